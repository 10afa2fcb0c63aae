// SPDX-License-Identifier: Apache-2.0

// Package cli is kubectl plumbline: it shows what was authorised, what runs and
// who made the difference, and it asks for acceptance.
//
// Start at [Run], which builds the command tree and turns an error into
// kubectl's words and an exit code. Each command has a file of its own:
//
//   - hash reads documents (documents.go, yaml.go) and never needs a cluster,
//     unless it is given TYPE/NAME;
//   - status, diff, blame, history and accept read Baselines through [cluster],
//     the one place that talks to an API server, and find them by the arguments
//     a kubectl user expects (target.go, selection.go).
//
// Commands gather, then compute a plain value (a report), then print it: the
// middle part is pure, so it is tested without a cluster, and -o json prints
// the same value that the table is drawn from.
//
// The plugin writes two things only: Baseline spec.accept, for the hash it has
// shown, and with adopt a new guard in mode Audit. What doctor reads comes through
// internal/doctor/gather, and its writes are dry runs.
package cli
