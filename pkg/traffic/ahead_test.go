// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"math"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func TestAReportOfALaterSequenceIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ newest, ahead, want uint64 }{
		"no report":                     {7, 0, 0},
		"the newest sequence":           {7, 7, 7},
		"after a restore":               {7, 2_500, 2_500},
		"the most that is believed":     {7, 7 + traffic.MaxAhead, 7 + traffic.MaxAhead},
		"more than is believed":         {7, 8 + traffic.MaxAhead, 0},
		"the highest number":            {7, math.MaxUint64, 0},
		"the highest number, far along": {math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := traffic.BoundAhead(tc.newest, tc.ahead); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
