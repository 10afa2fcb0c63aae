// SPDX-License-Identifier: Apache-2.0

// Package baseline carries out the drift rules of pkg/specguard for one guarded
// object at a time.
//
// [Reconciler.Reconcile] reads as the table of contents; each step is a file:
//
//	read.go       what is known: the object's transitions, its Baseline, its guards
//	observe.go    transitions become observations, one by one, in order
//	decide.go     specguard.Step for each of them
//	released.go   what the run of a release may have left, for such a step
//	revision.go   authorized bodies: stored, loaded, completed after a crash, trimmed
//	write.go      the Baseline: spec, then status, each a compare-and-swap
//	retire.go     Baselines whose object or guard is gone
//	condition.go  severity.go  announce.go  schedule.go  what people see, and when next
//	settings.go  checked.go   how often it is checked, and what follows from its being gone
//
// Package checks reads objects past the watch beside it; each reconciliation notes on its
// agenda when the object is due, and writes what a check found.
//
// # Why a crash anywhere heals
//
// Effects are carried out in one order: BaselineRevision, Baseline.spec,
// Baseline.status, and only then are the transitions settled. A revision without
// a spec that names it is a decision that was taken from a seen transition and
// not carried out; the next reconciliation completes it. A spec whose status
// lags is compared with what runs, which yields the same findings again. Each
// write carries the resourceVersion it was decided on: of two assessors, or of
// an assessor and a person who accepts, one gets a conflict, reads again and
// decides again.
//
// # What is remembered
//
// Between two reconciliations the state of each object is kept in memory
// ([specguard.State] without its body), because it knows more than the Baseline
// says. It is an optimization: whenever it does not agree with the Baseline, the
// Baseline is right.
package baseline
