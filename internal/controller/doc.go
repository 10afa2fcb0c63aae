// SPDX-License-Identifier: Apache-2.0

// Package controller is where decisions meet the cluster. Each kind has its
// own package below this one:
//
//   - environment keeps Environment status and tells which Environment a
//     namespace belongs to;
//   - guarddefaults keeps GuardDefaults status;
//   - guard compiles guards into the set in force, decides which kinds are
//     watched, and keeps the status of the guards;
//   - baseline carries out the drift rules: one object, its transitions one by
//     one, the effects in an order that survives a crash anywhere;
//   - policy makes plans, and reports why it makes none;
//   - plan carries out plans;
//   - abrelease decides splits, and keeps the status of releases.
//
// The wiring of a process is in internal/assessor, internal/executor and
// internal/discovery; internal/condition holds the kstatus rules of all kinds.
//
// What is right is decided elsewhere, in packages without a client, a clock or a
// goroutine. What is here reads, calls such a function, and writes.
package controller
