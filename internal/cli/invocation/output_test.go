// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestPrintable_ShowsNothingThatMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{"ok é 世": "ok é 世", "a\x1b[2Jb": "a\ufffd[2Jb", "a\nb\rc\td": "a\ufffdb\ufffdc\ufffdd", "\u202eevil": "\ufffdevil", "\u009b": "\ufffd"} {
		if got := Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestEscapedJSONSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		escaped := escapeUnprintable(raw)
		var got, plain string
		if err := json.Unmarshal(escaped, &got); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		if err := json.Unmarshal(raw, &plain); err != nil || got != plain {
			t.Fatalf("%q became %q (%v)", plain, got, err)
		}
		if strings.ContainsFunc(string(escaped), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q is left", escaped)
		}
	})
}
