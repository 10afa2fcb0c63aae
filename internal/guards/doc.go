// SPDX-License-Identifier: Apache-2.0

// Package guards compiles guard objects into the set in force.
//
// [Build] compiles every SpecGuard and ClusterSpecGuard into one immutable [Snapshot]:
// rules, namespaces, and where each kind is served. [Read] does so once, for a caller that
// plans or checks a write. The controller of the guards builds a snapshot after each change,
// and [Snapshot.Follow] finds the objects that the change concerns. [Tallies] counts the
// objects of each guard.
//
// A guard that does not compile is inert as a whole. A kind that the API server does not
// serve, or that has no namespace, is inert in its guard. [Snapshot] names the field of each
// [Problem].
package guards
