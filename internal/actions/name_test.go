// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"strings"
	"testing"
)

func TestShortenHash_LeavesWhatItDoesNotKnow(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"ours":               {"pl1:sha256:" + strings.Repeat("a", 64), "pl1:aaaaaaaaaaaa"},
		"a plain digest":     {"sha256:" + strings.Repeat("b", 64), "bbbbbbbbbbbb"},
		"an absent object":   {"absent", "absent"},
		"a short one":        {"pl1:sha256:abc", "pl1:sha256:abc"},
		"of another version": {"pl9:blake3:" + strings.Repeat("c", 64), "pl9:blake3:" + strings.Repeat("c", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ShortenHash(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
