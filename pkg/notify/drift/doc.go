// SPDX-License-Identifier: Apache-2.0

// Package drift decides which drift of guarded objects people hear of, and when.
//
//	Baselines ──▶ [Object] ─┐
//	                        ├─▶ [Compare] ──▶ [News], and the drift that is known now
//	the known drift ────────┘
//
// One [Known] is about the objects that one guard selects in one namespace. [SilentUntil] says
// how long notifications about a namespace are held back. All of it is functions on values.
package drift
