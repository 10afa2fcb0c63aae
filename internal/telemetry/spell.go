// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"unicode"
)

// SpellWord spells a word of the API as logs and metrics do: WouldNotConverge is would_not_converge.
func SpellWord(word string) string {
	var out strings.Builder
	for i, r := range word {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
