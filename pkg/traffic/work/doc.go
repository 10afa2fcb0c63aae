// SPDX-License-Identifier: Apache-2.0

// Package work decides how the executor carries one ReleaseWork out, one action at a time.
//
//	work, release ────────────────┐
//	live baseline and clone ──────┼──Next──▶ Wait, Try, Intend, Write or End
//	rights, halt, last answers ───┘
//
// [Next] is a function of what is stored and of what was learned since. An adapter carries the
// action out, reads everything anew, and asks again. The adapter remembers nothing that would
// matter if it were lost: a new executor begins with empty answers and comes to the same end.
//
// What keeps a work to one effect, and to what the author of the release asked for:
//
//   - A work has no body. Each look computes the body from the release and the live baseline.
//   - The intent is stored before the write, with uid and resourceVersion of the target, and the
//     write carries both. Of two writes with the same intent the API server stores one.
//   - The write carries a label with the uid of the work. A target with that label was written:
//     the work ends by what the target has, and does not write again.
//   - A work that is refused after its intent fences the target first, so that no write of an
//     executor before is stored after the refusal.
//   - The right of the requester is asked for before the dry run and before the write.
//
// HoldMinReplicas raises the minimum of an autoscaler. The former value is stored with the intent, and stays
// in the status of each work that goes on with the hold, so a work that puts the value back knows it. A
// minimum that is neither the former nor the held one is that of another writer, and stays.
//
// A Scale to 0, and a former minimum that is put back, make the cluster do less. A halt, a changed
// baseline and a requester without the right do not keep the executor from either.
package work
