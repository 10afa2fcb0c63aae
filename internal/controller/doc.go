// SPDX-License-Identifier: Apache-2.0

// Package controller is where decisions meet the cluster. Each kind has its
// own package below this one:
//
//   - environment keeps Environment status, by the rule of internal/environment;
//   - guarddefaults keeps GuardDefaults status, by the rule of
//     internal/guarddefaults;
//   - guard keeps in force the set that internal/guards compiles, decides which
//     kinds are watched, and keeps the status of the guards;
//   - baseline carries out the drift rules: one object, its transitions one by
//     one, the effects in an order that survives a crash anywhere;
//   - policy makes plans, and reports why it makes none;
//   - plan carries out plans;
//   - releasework carries out what releases need written to workloads;
//   - abrelease decides splits, and keeps the status of releases.
//
// A package below this one imports no other, and only the wiring of a process imports
// them: values that several packages read have a package beside internal/controller. The
// wiring is in internal/assessor, internal/executor, internal/discovery and cmd/xds;
// internal/condition holds the kstatus rules of all kinds.
//
// What is right is decided elsewhere, in packages without a client, a clock or a
// goroutine. What is here reads, calls such a function, and writes.
package controller
