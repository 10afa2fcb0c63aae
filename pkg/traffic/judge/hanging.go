// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	recentCells = 6
	// hangingCells are the ten seconds without a single answer.
	hangingCells = 3
	cellSeconds  = 10
	// hangingInFlight is how many requests wait for an answer at least.
	hangingInFlight = 20
	// hangingChance is the probability of one look that nothing is wrong: a hundred thousand looks
	// together stay below 1/10,000.
	hangingChance = 1e-9
)

// recent is how many requests were over in ten seconds.
type recent struct{ start, canary, control uint64 }

// see keeps the last minute.
func (s *State) see(cell *traffic.Cell, canary, control tally) {
	start := seconds(cell.Start)
	r := &s.recent[start/cellSeconds%recentCells]
	switch {
	case start < r.start:
		return
	case start > r.start:
		*r = recent{start: start}
	}
	r.canary += uint64(canary.n)
	r.control += uint64(control.n)
}

// hangs says that the canary answers nothing: in the last thirty seconds none of its requests was
// over, many are in flight, and so many of the control's were over that the canary's share of
// the requests in flight would have had some among them.
func (s *State) hangs(f *Facts) bool {
	newest := uint64(0)
	for _, r := range s.recent {
		newest = max(newest, r.start)
	}
	var canary, control, cells uint64
	for _, r := range s.recent {
		if r.start > 0 && r.start+hangingCells*cellSeconds > newest {
			canary, control = canary+r.canary, control+r.control
			cells++
		}
	}
	if cells < hangingCells || canary > 0 || f.InFlight < hangingInFlight || f.SinceStep < (hangingCells+1)*cellSeconds*time.Second {
		return false
	}
	share := float64(f.InFlight) / (float64(f.InFlight) + float64(f.ControlInFlight))
	return float64(control)*math.Log1p(-min(share, 1-1e-9)) <= math.Log(hangingChance)
}
