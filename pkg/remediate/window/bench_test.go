// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// BenchmarkAt looks six days ahead and one back: days, a window and allowed
// times, in a zone with summer time, on the day after the last allowed one.
func BenchmarkAt(b *testing.B) {
	s := parse(b, window.Spec{
		MaintenanceWindow: nightly("22:00", "06:00", "Europe/Berlin"), AllowedDays: []string{"Friday"},
		AllowedStart: "23:00", AllowedEnd: "05:00",
	})
	now := at(b, "2026-11-21T12:00:00Z")
	b.ReportAllocs()
	for b.Loop() {
		s.At(now)
	}
}
