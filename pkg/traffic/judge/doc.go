// SPDX-License-Identifier: Apache-2.0

// Package judge says whether the counted requests speak for a canary, against it, or neither.
//
//	Measurement ──Count──▶ State ──Judge(State, Config, Facts)──▶ Assessment
//	                         │
//	                         └──Encode, Decode──▶ checkpoint
//
// A [State] holds sums. The package reads cells of canary and control that belong together: of one
// part, ten seconds, port and sequence. Such a pair is a stratum. Given the failures of a stratum,
// the share of the canary's failures depends on the ratio of both error rates alone, whatever the
// load and whatever both arms suffer together. An e-process over all strata bets against a ratio of
// at most r0; [Judge] fails the canary when the bet has paid 1/α. Latency goes the same way, with
// requests that are slower than the control's 99th percentile in the place of failures.
//
// All bounds hold at each moment, so the caller may look as often as it likes. Dispersion widens
// all of them: errors that come in bursts count as fewer. docs/reference/judge.md derives each
// formula, names its source, and lists the results of simulations.
//
// # Which cells count where
//
// From the first stage on every cell of canary or control counts to the process of the whole run,
// also a cell whose sequence changed or is not known: the odds of a stratum are its own completed
// requests. Only a
// cell of the stage's own sequences counts to the stage. Requests that failed over and answers 4xx
// are failures of neither arm. A stratum without requests of one arm says nothing of the ratio, and
// counts to the rates of the other arm.
//
// # Decisions of the caller
//
// The caller keeps the clock of a stage, and stops it while [Assessment.ClockStands]. The caller
// extends an undecided stage, and judges a stage of weight zero by other means.
package judge
