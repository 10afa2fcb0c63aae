// SPDX-License-Identifier: Apache-2.0

// Package doctor tells what is wrong with an installation of Plumbline, or with
// the cluster around it, and how to put it right.
//
// A [Snapshot] is what was read from the cluster; each [Read] of it is a value,
// known to be absent, or unknown together with the reason. [Examine] runs every
// check of [Checks] over the snapshot. A check is a pure function from a
// snapshot to findings, so it is tested with a table and without a cluster; it
// has no clock, because the time is part of the snapshot.
//
// What could not be read is never good news: it makes a finding of severity
// Unknown that names the missing right, and [Report.Decide] does not pass a
// report in which such a finding could hide what the caller asked to fail on.
//
// One file per subject holds its checks (webhook.go, policy.go, scope.go, ...).
// Package gitops judges the ignore rules of Argo CD and Flux. Package gather, below
// this one, is the only part that talks to an API server.
// Each check is described for users in docs/reference/doctor.md.
package doctor
