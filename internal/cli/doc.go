// SPDX-License-Identifier: Apache-2.0

// Package cli is kubectl plumbline: it shows what was authorized, what runs and
// who made the difference, and it asks for acceptance.
//
// Start at [Run], which builds the command tree and turns an error into
// kubectl's words and an exit code. Each command has a file of its own:
//
//   - hash reads documents (documents.go, yaml.go) and never needs a cluster,
//     unless it is given TYPE/NAME;
//   - status, diff, blame, history, accept and check read Baselines through
//     [cluster], the one place that talks to an API server, and find them by the
//     arguments a kubectl user expects (target.go, selection.go);
//   - plan and policy are groups of verbs (group.go). preview.go and explain.go
//     gather what a policy depends on with internal/planning, with the rights of
//     the user, and leave every decision to the packages that the assessor and the
//     executor use;
//   - evidence reads signed records from their store, and asks the cluster only
//     how far they must go.
//
// Commands gather, then compute a plain value (a report), then print it: the
// middle part is pure, so it is tested without a cluster, and -o json prints
// the same value that the table is drawn from. Text for people that is no table
// goes through [description], which lets nothing through that a terminal obeys.
//
// The plugin writes what a person asks for, and nothing else: spec.accept and the
// annotation that asks for a check on Baselines, spec.control of plans, the mode
// of policies, the halt of ledgers, and with adopt a new guard in mode Audit. Each
// write names the user as the API server knows them, and carries the uid and the
// resourceVersion of what was shown (internal/actions). What doctor reads comes through
// internal/doctor/gather; its writes, and those of a preview, are dry runs.
package cli
