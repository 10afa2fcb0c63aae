// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// HourOf returns ten minutes of a run before a time, after a change of the leader: the second stage begins after
// five minutes, no proxy is heard for one minute, and the errors of the canary rise in the end.
func HourOf(now time.Time) history.Series {
	s := history.Series{Since: now.Add(-12 * time.Minute), Cells: []history.Cell{}, Looks: []history.Look{}}
	for i := range 60 {
		at := now.Add(time.Duration(i-60) * history.Step)
		if i >= 40 && i < 46 {
			continue
		}
		failed := uint64(max(i-50, 0))
		s.Cells = append(s.Cells, history.Cell{Start: at, Variation: "next", Requests: 100, Failed: failed}, history.Cell{Start: at, Variation: "stable", Requests: 900, Failed: 1, ClientErrors: 3})
		s.Looks = append(s.Looks, hourLook(at.Add(history.Step), i, failed))
	}
	return s
}

func hourLook(at time.Time, i int, failed uint64) history.Look {
	stage, of := int32(1), uint64(i+1)
	if i >= 30 {
		stage, of = 2, uint64(i-29) //nolint:gosec // positive
	}
	rate, width := float64(failed)/100, 0.3/float64(of)
	l := history.Look{
		Time: at, Run: 2, Stage: stage, Verdict: judge.Undecided, Reason: judge.TooFewRequests, SlowerThan: 64,
		Errors: history.Bet{E: 0.3 * float64(1+failed*failed*failed), FailsAt: 200}, Latency: history.Bet{E: 1 / float64(1+i), FailsAt: 200},
		Canary:  history.Arm{Variation: "next", Samples: 100 * of, ErrorRate: rate, Low: max(rate-width, 0), High: min(rate+width, 1), SlowRate: 0.01, LatencyP50: 11.3, LatencyP99: 64},
		Control: history.Arm{Variation: "stable", Samples: 900 * of, ErrorRate: 0.001, Low: 0.0001, High: 0.001 + width/5, SlowRate: 0.01, LatencyP50: 11.3, LatencyP99: 45.3},
	}
	if l.Errors.E >= l.Errors.FailsAt {
		l.Verdict, l.Reason = judge.Fail, judge.Errors
	}
	return l
}
