// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"testing"
	"time"
)

func TestAPlanStaysWhileItsRepairsCountForAChain(t *testing.T) {
	tests := map[string]struct {
		keep    time.Duration
		assess  bool
		expects time.Duration
	}{
		"by default":                        {0, true, 7 * 24 * time.Hour},
		"for an hour":                       {time.Hour, false, time.Hour},
		"for an hour, effects are assessed": {time.Hour, true, 4 * time.Hour},
		"for a day, effects are assessed":   {24 * time.Hour, true, 24 * time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			setup := &Setup{PlanRetention: tc.keep}
			setup.Effectiveness.Enabled = tc.assess
			if got := keepPlans(setup); got != tc.expects {
				t.Errorf("a plan stays for %s, want %s", got, tc.expects)
			}
		})
	}
}
