// SPDX-License-Identifier: Apache-2.0

// Package ledger grants steps of remediation plans, or refuses them.
//
// A RemediationLedger lists what was granted lately and how it ended. Its status
// is written as a whole with the resourceVersion it was read at, so one write is
// one compare-and-swap: two executors cannot both take the last place of a limit.
// Everything else that knows of limits (Redis, caches) is a copy that may refuse
// and never grant.
//
// The life of a step here:
//
//	Reserve ──▶ an entry without an end ──▶ Settle (it wrote, well or not)
//	                                    └─▶ Release (it wrote nothing; the entry goes)
//
// [Gates] says of every limit where it stands; [Reserve] grants when all of them
// are open. The same step may be reserved and settled again and again: only the
// first time counts, so whoever died between a write here and the next one
// elsewhere simply repeats it.
//
// Limits over an hour and a day count an entry from its reservation until that
// long after its end. The write happens between the two, so in no window of an
// hour, wherever it begins, can there be more writes than the limit.
//
// The circuit breaker of a policy opens after some failures in a row, lets one
// step through when it has been open long enough, and closes when that one
// succeeds. It is a part of the ledger, so a restart neither closes it nor lets
// two through.
//
// Where effects are assessed, a success is the Effective verdict on a step, and no longer its end
// ([ApplyVerdict]). The verdict comes minutes or hours later, and may never come: the breaker waits
// until a deadline that it stores, and then lets the next step through.
package ledger
