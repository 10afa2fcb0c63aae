// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"strings"
	"unicode"
)

// SnakeCase spells a word of the API in snake case: WouldNotConverge is would_not_converge.
func SnakeCase(word string) string {
	var out strings.Builder
	for i, r := range word {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
