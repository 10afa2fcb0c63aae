// SPDX-License-Identifier: Apache-2.0

// Package preview tells the plans that a policy would make now, before anything is stored.
//
// The decision is the assessor's own: internal/planning gathers, and pkg/remediate/planner
// plans. Each write of the plans is then tried as a dry run, with the request that the
// executor would send. Everything is read and tried with the rights of the person who asks.
// The result is a [Report], for the plugin and for every other way to ask.
package preview
