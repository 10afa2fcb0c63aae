// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestFindSelected(t *testing.T) {
	arms := map[string]rollout.Arm{
		"stable": {Labels: map[string]string{"app": "web", "track": "stable"}}, "canary": {Labels: map[string]string{"app": "web", "track": "canary"}},
	}
	cases := map[string]struct {
		selector map[string]string
		active   string
		arms     map[string]rollout.Arm
		want     string
	}{
		"the one that matches":                     {map[string]string{"track": "stable"}, "canary", arms, "stable"},
		"of both the active one":                   {map[string]string{"app": "web"}, "canary", arms, "canary"},
		"none that lacks a label":                  {map[string]string{"app": "web", "zone": "a"}, "canary", arms, ""},
		"none without a selector":                  {nil, "canary", arms, ""},
		"none of which no workload is there":       {map[string]string{"app": "web"}, "canary", nil, ""},
		"one whose pods have no labels is skipped": {map[string]string{"app": "web"}, "canary", map[string]rollout.Arm{"canary": {}, "stable": arms["stable"]}, "stable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rollout.FindSelected(tc.selector, tc.active, [2]string{"stable", "canary"}, tc.arms); got != tc.want {
				t.Errorf("selected is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNeedsReturn(t *testing.T) {
	run := func(state rollout.RunState) *rollout.Run { return &rollout.Run{State: state} }
	cases := map[string]struct {
		state    rollout.State
		selected string
		want     bool
	}{
		"while a run is on":                            {rollout.State{Active: "stable", Run: run(rollout.Running)}, "stable", true},
		"while the active variation is not selected":   {rollout.State{Active: "canary", Run: run(rollout.Completed)}, "stable", true},
		"not when the active variation is":             {rollout.State{Active: "canary", Run: run(rollout.Completed)}, "canary", false},
		"not when the Service selects none":            {rollout.State{Active: "canary", Run: run(rollout.Completed)}, "", false},
		"not before the first run":                     {rollout.State{Active: "stable"}, "canary", false},
		"nor of a release whose state is not known":    {rollout.State{}, "stable", false},
		"and not after a rollback to what is selected": {rollout.State{Active: "stable", Run: run(rollout.RolledBack)}, "stable", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.NeedsReturn(tc.selected); got != tc.want {
				t.Errorf("needs a return: %v, want %v", got, tc.want)
			}
		})
	}
}
