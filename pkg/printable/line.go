// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of others fit for a status and for a terminal.
package printable

import (
	"strings"
	"unicode"
)

const ellipsis = "…"

// Line returns a text as one line of at most so many bytes, three or more, without control characters.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if text = strings.TrimSpace(text); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
