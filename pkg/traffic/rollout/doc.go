// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how a release moves its requests from one revision to another, stage by
// stage.
//
//	strategy, verbs of people ───────┐
//	State until now ─────────────────┼──Decide──▶ State, weight of the canary, events, when to look again
//	pods, proxies, verdict, time ────┘
//
// A release is a line of runs. Each new revision of the inactive variation, the canary, is a run: it is
// created, deployed, measured in stages, and then promoted or rolled back. Package release turns the
// weight of the canary into a split with a sequence; nothing here makes sequences.
//
// A [State] is complete: a process that reads it goes on where another one stopped, and the same
// facts twice change nothing. Each wait has a reason of a closed list, and says what ends it.
//
// A verdict of failure acts whatever else a run waits for. Missing data never moves a run forward.
package rollout
