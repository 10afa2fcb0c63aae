// SPDX-License-Identifier: Apache-2.0

// Package abrelease puts ABReleases in force: it decides, by package release, what of
// each proxies are told, writes that into its status, from where every replica of the
// discovery server takes it, and says what has become of it.
//
//	ABRelease ──┐                             ┌─▶ status.effective ──▶ replicas ──▶ proxies
//	mesh ───────┼──▶ Reconciler ──▶ Decide ───┤
//	ledger ─────┘         ▲                   └─▶ conditions, Events
//	                      └── traffic.Router: who has acknowledged it, what was counted
//
// One replica at a time does this, the one that leads. The others, and proxies, go on
// with what was decided last.
package abrelease
