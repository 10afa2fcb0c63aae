// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// tenThousand is the installation that the documented cost is told of.
const tenThousand = 10000

// What 10,000 objects cost that were all installed at the same moment and are
// checked every 3 h: docs/reference/resync.md has the figures. A check is one read
// and one write.
func TestTenThousandObjectsCostLessThanOneCheckPerSecond(t *testing.T) {
	const period, days = 3 * time.Hour, 5
	var seconds [days * 24 * 3600]uint16
	for i := range tenThousand {
		timing := resync.Timing{UID: fmt.Sprint("uid-", i), Period: period, LastCheck: epoch}
		for {
			timing.Now = timing.LastCheck
			at := resync.NextCheck(timing).At
			second := int(at.Sub(epoch) / time.Second)
			if second >= len(seconds) {
				break
			}
			seconds[second]++
			timing.LastCheck = at
		}
	}
	perSecond := func(from, to int) float64 {
		total := 0
		for _, n := range seconds[from:to] {
			total += int(n)
		}
		return float64(total) / float64(to-from)
	}
	if rate := perSecond(24*3600, len(seconds)); rate < 0.80 || rate > 0.88 {
		t.Errorf("%.2f checks a second, documented are 0.84", rate)
	}
	busiest := 0.0
	for minute := 60; minute < len(seconds); minute += 60 {
		busiest = max(busiest, perSecond(minute-60, minute))
	}
	if busiest > 6 {
		t.Errorf("%.1f checks a second in the busiest minute, documented are at most 6", busiest)
	}
	later := 0.0
	for minute := 48 * 3600; minute < len(seconds); minute += 60 {
		later = max(later, perSecond(minute-60, minute))
	}
	if later > 2 {
		t.Errorf("%.1f checks a second in the busiest minute after two days, documented are at most 2", later)
	}
	t.Logf("busiest minute %.2f, after two days %.2f; busiest second %d", busiest, later, slices.Max(seconds[:]))
}

func fullAgenda(due bool) *Agenda {
	a := NewAgenda()
	last := epoch.Add(-time.Hour)
	if due {
		last = epoch.Add(-4 * time.Hour)
	}
	for i := range tenThousand {
		a.Note(keyNamed(fmt.Sprint("web-", i)), Appointment{Timing: resync.Timing{UID: fmt.Sprint(i), Period: 3 * time.Hour, LastCheck: last}}, epoch)
	}
	return a
}

// BenchmarkChoose is one look at the agenda of 10,000 objects.
func BenchmarkChoose(b *testing.B) {
	for name, due := range map[string]bool{"nothing due": false, "all due": true} {
		b.Run(name, func(b *testing.B) {
			a := fullAgenda(due)
			b.ReportAllocs()
			for b.Loop() {
				a.makeRoom()
				a.choose(epoch, nil, limits{maxConcurrent: DefaultMaxConcurrent, installation: 10})
				a.next()
			}
		})
	}
}
