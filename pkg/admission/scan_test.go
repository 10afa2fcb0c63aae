// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"testing"
)

func TestTextsOfAReviewAreReadAsJSON(t *testing.T) {
	for name, test := range map[string]struct {
		raw, want string
		good      bool
	}{
		"plain":                 {`"a~ b"`, "a~ b", true},
		"an escape":             {`"a\n"`, "a\n", true},
		"a letter beyond ASCII": {`"é"`, "é", true},
		"what is no UTF-8":      {"\"a\x80\"", "a\uFFFD", true},
		"a control character":   {"\"a\x1f\"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := unquote([]byte(test.raw)); got != test.want || (err == nil) != test.good {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestAValueThatIsMissingInAReviewIsMalformed(t *testing.T) {
	for _, text := range []string{"", " ", ",", ":", "}", "]"} {
		s := scanner{b: []byte(text)}
		if _, err := s.raw(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
