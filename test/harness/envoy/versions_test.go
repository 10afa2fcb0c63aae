// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachVersionIsTestedWith(t *testing.T) {
	tests := map[string]struct {
		oldest string
		want   []string
	}{
		"both":                               {"/oldest", []string{"/latest", "/oldest"}},
		"one, where no oldest is named":      {"", []string{"/latest"}},
		"one, where it is that of the tests": {"/latest", []string{"/latest"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(variable, "/latest")
			t.Setenv(oldestVariable, tc.oldest)
			var got []string
			EachVersion(t, func(t *testing.T) { got = append(got, Binary(t)) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if after := Binary(t); after != "/latest" {
				t.Errorf("after them tests have %s", after)
			}
		})
	}
}
