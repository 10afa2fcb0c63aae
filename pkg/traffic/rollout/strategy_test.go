// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestAStrategyNamesEachFault(t *testing.T) {
	ramp := func(weights ...traffic.Weight) rollout.Strategy {
		s := rollout.Strategy{Interval: rollout.MinInterval}
		for _, weight := range weights {
			s.Stages = append(s.Stages, rollout.Stage{Weight: weight, Duration: time.Minute})
		}
		return s
	}
	many := func(n int) rollout.Strategy {
		s := ramp()
		for i := range n {
			s.Stages = append(s.Stages, rollout.Stage{Weight: traffic.Weight(i), Duration: time.Minute})
		}
		return s
	}
	with := func(s rollout.Strategy, change func(*rollout.Strategy)) rollout.Strategy { change(&s); return s }
	tests := map[string]struct {
		strategy rollout.Strategy
		want     []string // the beginning of each line
	}{
		"a ramp":                                {ramp(1_00, 50_00, traffic.Total), nil},
		"one stage":                             {ramp(traffic.Total), nil},
		"a first stage without requests":        {ramp(0, traffic.Total), nil},
		"the last stage without a duration":     {with(ramp(1_00, traffic.Total), func(s *rollout.Strategy) { s.Stages[1].Duration = 0 }), nil},
		"the most stages":                       {many(rollout.MaxStages), nil},
		"the lowest and the highest threshold":  {with(ramp(1_00, 2_00), func(s *rollout.Strategy) { s.Stages[1].HealthThreshold = 100_00 }), nil},
		"no stage":                              {ramp(), []string{"stages: 0, want 1 to 16"}},
		"one stage too many":                    {many(rollout.MaxStages + 1), []string{"stages: 17, want 1 to 16"}},
		"an interval below that of the counts":  {with(ramp(1_00), func(s *rollout.Strategy) { s.Interval = rollout.MinInterval - 1 }), []string{"healthCheckInterval: "}},
		"a later stage without requests":        {ramp(0, 0), []string{"stages[1].trafficPercentage: only the first"}},
		"a stage with as many requests":         {ramp(5_00, 5_00), []string{"stages[1].trafficPercentage: a stage has more"}},
		"a stage with fewer requests":           {ramp(5_00, 4_00), []string{"stages[1].trafficPercentage: a stage has more"}},
		"more than all requests":                {ramp(traffic.Total + 1), []string{"stages[0].trafficPercentage: 10001 basis points"}},
		"less than no requests":                 {ramp(-1), []string{"stages[0].trafficPercentage: -1 basis points"}},
		"a stage before the last without time":  {with(ramp(1_00, 2_00), func(s *rollout.Strategy) { s.Stages[0].Duration = 0 }), []string{"stages[0].duration: only the last"}},
		"a time below zero":                     {with(ramp(1_00), func(s *rollout.Strategy) { s.Stages[0].Duration = -1 }), []string{"stages[0].duration: -1ns is negative"}},
		"a threshold above all requests":        {with(ramp(1_00), func(s *rollout.Strategy) { s.Stages[0].HealthThreshold = 100_01 }), []string{"stages[0].healthThreshold: 10001"}},
		"a threshold below none":                {with(ramp(1_00), func(s *rollout.Strategy) { s.Stages[0].HealthThreshold = -1 }), []string{"stages[0].healthThreshold: -1"}},
		"a gate without a query":                {with(ramp(1_00), func(s *rollout.Strategy) { s.Queries = []gates.Query{{}} }), []string{"queries[0]"}},
		"two faults of two stages are told":     {ramp(5_00, 4_00, -1), []string{"stages[1].trafficPercentage", "stages[2].trafficPercentage", "stages[2].trafficPercentage"}},
		"an interval and a stage are both told": {with(ramp(-1), func(s *rollout.Strategy) { s.Interval = 0 }), []string{"healthCheckInterval: ", "stages[0].trafficPercentage"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := tc.strategy.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			for i := range min(len(got), len(tc.want)) {
				if strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
