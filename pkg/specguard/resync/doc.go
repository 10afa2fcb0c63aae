// SPDX-License-Identifier: Apache-2.0

// Package resync says when a guarded object is looked at again although nobody
// was seen writing it, and what follows when it turns out to be gone.
//
// Drift is normally found by watching. A scheduled check is for what a watch
// cannot show: a change that was lost, a component that was down, an etcd that
// was restored. It is off unless somebody asks for it.
//
// Five questions, one function each, in the order in which a caller asks them:
//
//   - [Resolve]: how often is this object checked, may it be repaired, and who said
//     so? The object's annotation, its guards, GuardDefaults and the command line
//     are asked in turn, and the [Answer] keeps what each of them said.
//   - [NextCheck]: when is it due? From the last operation on, one period and up to
//     a fifth more.
//   - [Settled]: may it be checked now, or is something else going on with it?
//   - [Select]: which of those that are due start now? As many as the threshold
//     lets, the longest due first.
//   - [Deleted]: the check found nothing. Is the object created again?
//
// [Backoff] is for a check that failed, [ParsePeriod] and [ParseThreshold] read
// what people write.
//
// Everything here is a function of its arguments: there is no clock, no random
// number and no memory. What must survive a restart is in the Baseline (lastCheckTime,
// nextCheckTime), so a restart neither forgets a check nor makes all of them due.
//
// docs/reference/resync.md has the tables for users.
package resync
