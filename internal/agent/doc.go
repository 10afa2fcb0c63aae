// SPDX-License-Identifier: Apache-2.0

// Package agent runs beside a proxy that is no Envoy, and is its client of the discovery server.
//
//	discovery server ◀─delta, TLS, token─▶ stream ──▶ loop ──follow.State──▶ Connector ──▶ program
//	                 ◀──metrics service──── counts ◀──────────────────────────┘
//	                                                  └──▶ Store: what is in force, on a volume
//
// The loop alone has the state. One attempt to bring the program to its ports is under way at a time,
// and all that comes meanwhile is part of the next attempt.
//
// With the discovery server away the agent holds the effective resources. After a restart the agent begins
// with the resources of its [Store], and the program with the files that are beside the store.
package agent
