// SPDX-License-Identifier: Apache-2.0

package clitest

// Hostile clears a screen, ends a line, comes back over it, reverses what
// follows, hides a character, and speaks C1.
const Hostile = "eve\x1b[2J\x1b]0;title\a\nDEPLOYMENT in sync\rroot\u202egnp.exe\u200b\u009b31m\u2028"
