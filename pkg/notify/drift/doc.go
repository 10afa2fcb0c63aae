// SPDX-License-Identifier: Apache-2.0

// Package drift decides what people hear of the drift of guarded objects, and when.
//
//	Baselines ──▶ [Object] ─┐
//	                        ├─▶ [Compare] ──▶ [News], and what people know now
//	what people know ───────┘
//
// One [Known] is about the objects that one guard selects in one namespace. [SilentUntil] says
// how long notifications about a namespace are held back. All of it is functions on values.
package drift
