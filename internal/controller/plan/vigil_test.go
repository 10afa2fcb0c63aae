// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func sightingOf(name, version string) exec.Sighting {
	deployment := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	return exec.Sighting{Reference: exec.Reference{GVK: deployment, Namespace: "shop", Name: name}, ResourceVersion: version}
}

func TestAChangeOfATargetWakesThePlanThatWaitsForIt(t *testing.T) {
	first, second := types.NamespacedName{Namespace: "shop", Name: "first"}, types.NamespacedName{Namespace: "shop", Name: "second"}
	tests := map[string]struct {
		plan types.NamespacedName
		now  exec.Sighting
		want bool
	}{
		"a newer version does":                        {first, sightingOf("web", "101"), true},
		"a version with more digits is newer":         {first, sightingOf("web", "1000"), true},
		"the version that the plan saw does not":      {first, sightingOf("web", "100"), false},
		"an older version does not":                   {first, sightingOf("web", "99"), false},
		"a version that cannot be compared does":      {first, sightingOf("web", "odd"), true},
		"a target of another plan does not":           {first, sightingOf("api", "999"), false},
		"nor does a target that the plan did not see": {first, sightingOf("worker", "999"), false},
		"a plan that waits for nothing is not woken":  {second, sightingOf("web", "101"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var v Vigil
			v.Saw(first, []exec.Sighting{sightingOf("web", "100"), sightingOf("worker", "")}, time.Unix(1, 0))
			v.Saw(second, []exec.Sighting{sightingOf("web", "100")}, time.Unix(1, 0))
			v.Saw(second, nil, time.Unix(2, 0))
			if got := v.Wakes(test.plan, test.now); got != test.want {
				t.Errorf("it wakes the plan: %v", got)
			}
		})
	}
}

// D24 of the review of remediation: at most one look a second.
func TestAPlanLooksAtATargetThatChangesOnceASecondAtMost(t *testing.T) {
	var v Vigil
	plan := types.NamespacedName{Namespace: "shop", Name: "first"}
	look := func(version string, at time.Time) { v.Saw(plan, []exec.Sighting{sightingOf("web", version)}, at) }
	look("100", time.Unix(10, 0))
	if !v.Wakes(plan, sightingOf("web", "101")) || v.Wakes(plan, sightingOf("web", "102")) {
		t.Error("of two changes after a look the first one alone wakes the plan")
	}
	if due := v.Due(plan); !due.Equal(time.Unix(11, 0)) {
		t.Errorf("it looks again at %s", due)
	}
	look("102", time.Unix(11, 0))
	if v.Wakes(plan, sightingOf("web", "102")) || !v.Wakes(plan, sightingOf("web", "103")) {
		t.Error("after the next look the plan is woken by what is newer than that")
	}
}
