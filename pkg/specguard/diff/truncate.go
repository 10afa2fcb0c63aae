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
	for room > 0 && !utf8.RuneStart(value[room]) {
		room--
	}
	return string(value[:room]) + truncationEnd(len(value)-room)
}

func truncationEnd(cut int) string { return fmt.Sprintf("… (+%d bytes)", cut) }
