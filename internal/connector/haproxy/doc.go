// SPDX-License-Identifier: Apache-2.0

// Package haproxy says in HAProxy's words what package envoyxds reads of a port.
//
//	ports, slots of servers ──[Render]──▶ Files: plumbline.cfg, splits.map, matches.map
//	                                      Structure: a reload is needed when it changes
//	endpoints ──[Place]──▶ slots ──[Commands]──▶ commands of the Runtime API, without reload
//	a split   ──[Entry]──▶ one entry of splits.map, set and read back in each worker
//
// A user writes `use_backend plb_NAMESPACE_SERVICE_PORT`, or without the port if the Service has one.
// HAProxy chooses a backend in a frontend alone, so that backend hands each request through an
// abstract socket to a frontend of the same process, which has the rules of the port, and a backend
// for each arm. The hop is within the process, keeps its connections, and is there with and without
// a split, so the begin of a split renames nothing.
//
// What depends on what:
//
//   - An entry of splits.map is all that a step changes: sequence, arms and ends in one value, which
//     a request reads once. So a step is atomic, and counts at once on kept connections.
//   - The key of the entry has a digest of the rules that read the value. A worker of before that has
//     other rules does not have the key, and so is no proof.
//   - An endpoint changes a slot: `set server`, drain before maintenance. Slots only grow, to the next
//     power of two.
//   - All else is structure: ports, arms, key, salt, headers, time-outs, the number of slots.
//
// The files always hold what is in force, so that a program that starts comes up right.
//
// # What differs from an Envoy
//
// [Check] refuses what HAProxy cannot do. The rest: of a header or Cookie header that comes twice, the
// first one is hashed; a request that CONNECT asks for is divided as any other; endpoints are not
// ejected, so failover begins when a variation has no endpoint, not when it answers no connection;
// idle connections are halved after each idle time-out, which is no bound for the last one.
package haproxy
