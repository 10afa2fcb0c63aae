// SPDX-License-Identifier: Apache-2.0

// Package releasework has the executor carry ReleaseWorks out: the discovery server asks by them
// for writes to workloads, which it may not write itself.
//
//	ReleaseWork ──▶ Reconciler ──▶ facts, read live ──▶ work.Next ──┐
//	                    ▲                                           │
//	                    └──── dry run, intent, write, status ◀──────┘
//
// What is right is decided by package work. Before each action the reconciler reads all anew from
// the API server: the work, the release, its Deployments, the halts of ledgers, and by reviews of
// access the rights of the executor and of the author of the release.
//
// One worker carries one work after another. The executor that has the lease has the worker.
package releasework
