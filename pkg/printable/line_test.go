// SPDX-License-Identifier: Apache-2.0

package printable

import "testing"

func TestLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a short text stays":                         {"short", "short"},
		"a text of exactly so many bytes stays":      {"0123456789", "0123456789"},
		"a longer text ends with an ellipsis":        {"0123456789a", "0123456…"},
		"a character that does not fit is left out":  {"012345é89ab", "012345…"},
		"lines and control characters become spaces": {" a\nb\x1b\t", "a b"},
		"an empty text":                              {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.text, 10); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
