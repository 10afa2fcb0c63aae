// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"
	"unicode"
)

// Printable replaces by U+FFFD what could move a cursor, hide or reorder text, or
// add a line: everything but letters, marks, numbers, punctuation, symbols and
// the ASCII space. Names of users and field managers, paths and values are
// chosen by whoever wrote them, and people read them on terminals.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
