// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestPrintable(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                {"", ""},
		"what people write":      {"José 世界 → ‘x’ №1 😀", "José 世界 → ‘x’ №1 😀"},
		"an escape sequence":     {"a\x1b[2Jb", "a\ufffd[2Jb"},
		"lines and tabs":         {"a\nb\rc\td", "a\ufffdb\ufffdc\ufffdd"},
		"C1 controls and DEL":    {"\u009b\u0085\x7f", "\ufffd\ufffd\ufffd"},
		"text turned around":     {"\u202eevil\u2066", "\ufffdevil\ufffd"},
		"what cannot be seen":    {"a\u200bb\u00adc\ufeff\u2060", "a\ufffdb\ufffdc\ufffd\ufffd"},
		"other spaces":           {"a\u00a0b\u3000c\u2028", "a\ufffdb\ufffdc\ufffd"},
		"bytes that are no text": {"a\xffb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diff.Printable(tc.text); got != tc.want {
				t.Errorf("result is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPrintableTwiceIsPrintableOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := diff.Printable(rapid.String().Draw(t, "text"))
		for _, r := range once {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q is left in %q", r, once)
			}
		}
		if twice := diff.Printable(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
