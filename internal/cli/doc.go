// SPDX-License-Identifier: Apache-2.0

// Package cli is kubectl plumbline: it shows the authorized state, the present state and
// the writers of the differences, and it asks for acceptance.
//
// Start at [Run], which builds the command tree and turns an error into
// kubectl's words and an exit code. Each verb, or group of verbs, is a package below:
//
//	cli ──▶ accept, adopt, blame, console, diff, doctor, evidence, halt, hash, history,
//	   │    plan, policy, proxies, remediate, status
//	   │       │
//	   │       ▼
//	   │    preview ──▶ comparison, documents, guarded, remediation
//	   │       │
//	   ▼       ▼
//	invocation
//
// A verb imports the packages below it and never another verb:
//
//   - invocation has the streams, the connection to the cluster, and kubectl's
//     conventions for errors, output and flags;
//   - guarded finds the objects that a command line names, and their Baselines;
//   - comparison prints differences, documents reads manifests, remediation speaks of
//     plans and policies, and preview prints the plans that a policy would make.
//
// The package clitest supports the tests of the verbs with a cluster in memory. This
// package has the commands about the plugin itself: options, version and completion.
//
// Commands gather, then compute a plain value (a report), then print it: the
// middle part is pure, so it is tested without a cluster, and -o json prints
// the same value that the table is drawn from. Text for people that is no table
// goes through [invocation.Description], which lets no sequence through that a terminal obeys.
//
// The plugin writes the requests of a person alone: spec.accept and the
// annotation that asks for a check on Baselines, spec.control of plans, the mode
// of policies, the halt of ledgers, and with adopt a new guard in mode Audit. Each
// write names the user as the API server knows them, and carries the uid and the
// resourceVersion of the shown object (internal/actions). Doctor reads through
// internal/doctor/gather; its writes, and those of a preview, are dry runs.
package cli
