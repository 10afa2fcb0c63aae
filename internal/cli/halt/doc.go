// SPDX-License-Identifier: Apache-2.0

// Package halt is "kubectl plumbline halt" and "unhalt": it stops all remediation of an
// Environment, and lets remediation go on.
//
// The two verbs are one package, because unhalt is halt with the opposite value: they
// share the ledgers, the write and its results.
package halt
