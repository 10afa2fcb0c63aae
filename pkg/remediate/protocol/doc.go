// SPDX-License-Identifier: Apache-2.0

// Package protocol carries a remediation plan out, one decision at a time, so
// that every step takes effect at most once, whatever dies in between.
//
// [Next] is a function of the plan as it is stored and of what was learned since
// it was read; it returns one [Effect]. An adapter carries the effect out, tells
// [Facts] what came of it, and asks again. Nothing is remembered between two runs
// but what is stored: a new executor begins with empty facts and comes to the
// same end.
//
//	Planned ──▶ Reserved ──▶ Intent ──▶ Applied ──▶ Verified
//	   │            │           │          └──────▶ Failed
//	   └────────────┴───────────┴──▶ Skipped (proven: nothing was written), Fenced
//
// A step that has to wait for long goes back to Planned from Reserved, and from an
// Intent that was fenced: it holds neither a place in the ledgers nor its target.
//
// What keeps a step to one effect:
//
//   - An intent is stored before the write, with the target's uid and
//     resourceVersion, and the write carries both. Of two writes with the same
//     intent the API server stores one.
//   - Whoever finds an intent and does not know what came of it reads the target.
//     As it is to be: it was written. As it was, and its generation too: it was
//     not, and may be. Anything else ends the step without another write.
//   - Before an end is told (canceled, halted), and before a plan is paused or
//     waits for long, every open intent is fenced: a write of a label moves the resourceVersion, so that a request
//     that is still under way is refused.
//
// What is unknown changes nothing: the step waits and asks again.
//
// # After the end of a step
//
// The phase of a plan says that its steps were written, and never whether they helped. The assessor
// says that later, for each step by itself. When the plan waits, or has ended, the executor tells the verdict to the ledger and to
// people, and notes it in the plan last. So an executor that dies in between does all of it again,
// and the ledger counts a verdict once.
package protocol
