// SPDX-License-Identifier: Apache-2.0

package printable

import "testing"

func TestSnakeCase(t *testing.T) {
	for word, want := range map[string]string{"": "", "Full": "full", "MetricsTimedOut": "metrics_timed_out", "already_there": "already_there"} {
		if got := SnakeCase(word); got != want {
			t.Errorf("%q is spelled %q, want %q", word, got, want)
		}
	}
}
