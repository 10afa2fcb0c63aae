// SPDX-License-Identifier: Apache-2.0

// Package adopt prepares a guard for objects that nobody has guarded yet: what
// it would cover, who has been writing those objects, what of that would have
// been drift, and whom the guard should trust. It is pure: facts in, a [Report]
// with a [Proposal] out. kubectl plumbline adopt reads the facts and prints.
//
// Start at [NewSurvey]. A [Survey] takes the objects one by one, so that a big
// cluster is read in pages and kept as bounded rows and counts;
// [Survey.Candidates] then says whose existence decides, and [Survey.Report]
// concludes. What is said is decided by package specguard itself: the draft and
// the proposal are compiled as any guard is, and each past write is classified
// by the proposal's own rules.
//
// Two kinds of evidence name a past writer:
//
//   - The writer stamp names an authenticated user. It is proof only if the
//     in-process policy that sets it was in force at the time of the write;
//     before that, anybody could have written the annotation.
//   - managedFields name a field manager, which a client may choose, and hold no
//     user. A manager of a known controller is mapped to the service account
//     that this controller usually has, if that account exists. What a manager
//     owns is known; which of it the last write changed is not.
//
// So a field manager alone never makes anybody trusted: at most it suggests the
// service account of a controller that is there. Whoever cannot be told is
// listed as to be decided, with the reason.
package adopt
