// SPDX-License-Identifier: Apache-2.0

// Package status is "kubectl plumbline status" and "check": it shows the state of guarded
// objects, and has objects checked before that.
//
// The two verbs are one package, because check prints the table of status, answers by the
// exit codes of status, and has the flags of status.
package status
