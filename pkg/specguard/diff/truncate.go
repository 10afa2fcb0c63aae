// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"unicode/utf8"
)

// Truncate is value as text of at most limit bytes. When it is cut, between two
// runes, it ends in "… (+N bytes)" and is JSON no more; when there is no room
// for that end, it is empty. Redact first: a cut secret is still a secret.
func Truncate(value []byte, limit int) string {
	if len(value) <= limit {
		return string(value)
	}
	// The end can only get shorter when less is cut, so the longest one is
	// room enough.
	room := limit - len(truncationEnd(len(value)))
	if room < 0 {
		return ""
	}
	room = runeEdge(value, room)
	return string(value[:room]) + truncationEnd(len(value)-room)
}

// TruncateText is text of at most limit bytes, for a message or a name. When it
// is cut, between two runes, it ends in "…"; when there is no room for that
// end, it is empty. Unlike [Truncate] it does not tell how much is missing.
func TruncateText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	room := limit - len(ellipsis)
	if room < 0 {
		return ""
	}
	return text[:runeEdge(text, room)] + ellipsis
}

const ellipsis = "…"

// runeEdge is the last edge of a rune that is not after at, an index into text.
func runeEdge[T []byte | string](text T, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

func truncationEnd(cut int) string { return fmt.Sprintf(ellipsis+" (+%d bytes)", cut) }
