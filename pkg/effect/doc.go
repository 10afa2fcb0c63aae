// SPDX-License-Identifier: Apache-2.0

// Package effect decides whether a remediation helped, and whether it is still in effect.
//
//	Windows.Schedule(written) ──▶ Schedule ──┐
//	Assessment (as it is stored) ────────────┼──Next──▶ Decision: ask, wait, or complete
//	Facts (what was learned since) ──────────┘
//
//	components ──ScoreOf──▶ score ──┐
//	reason, hash, components ───────┴──VerdictOf──▶ Effective, Ineffective, Inconclusive, Invalidated
//
// The phase of a plan says whether a step was written. The verdict says whether the write
// helped. The package never mixes the two.
//
// # Time
//
// All instants are those of the API server. While the clocks are not compared, nothing
// expires. The boundaries belong to what begins there: at the stabilized time the workload is
// stable, and at the deadline the assessment has expired.
//
// # Hash first
//
// The hash of a write is that of the answer to the write. From then on each look compares the
// live hash with that one. Another hash ends the assessment as SpecDrift, whatever else is
// known by then. What could not be read is unknown, and is never drift.
//
// # Scores
//
// Scores are whole basis points, from 0 to 10,000. A component without a score is left out of
// the weights. [ScoreOf] names the version of its formula, so that a later formula needs no new
// measurement.
package effect
