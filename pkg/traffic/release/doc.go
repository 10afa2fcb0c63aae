// SPDX-License-Identifier: Apache-2.0

// Package release decides what of an ABRelease is in force.
//
//	spec ──TermsOf──▶ Terms or problems ─┐
//	what is in force until now (State) ──┼──Decide──▶ State, events, when to look again
//	endpoints that are ready, the time ──┘
//
// A [State] is complete: whoever translates it needs nothing else, and two that do
// say the same. It has a sequence, which grows with each change of anything that
// decides where a request goes, clamping included, and never otherwise: the same facts
// twice change nothing.
//
// What cannot be in force leaves in force what was: an ABRelease whose spec is made
// invalid divides requests as before. [Contradictions] says what was seen that cannot
// be if what is in force is.
//
// Nothing here reads a clock or knows a proxy.
package release
