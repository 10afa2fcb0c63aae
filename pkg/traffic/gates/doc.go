// SPDX-License-Identifier: Apache-2.0

// Package gates judges a run of a release by queries and webhooks.
//
//	definitions, State until now, Answer ──Step──▶ State
//	definitions, State of all gates ──Judge──▶ Verdict at a point of the run
//
// A gate is a query of Prometheus or a webhook. Queries are asked while a stage is measured. A webhook is
// asked about one event: before the start, before a stage, during a stage, or before the promotion. A
// webhook of the event AfterRollback is told.
//
// Gates veto. A run goes past a point when each gate of the point passes, and all else that the run needs
// is there as well. No data, an error, and an answer of another form wait: they never pass and never
// fail. Package rollout applies verdicts; adapters ask.
package gates
