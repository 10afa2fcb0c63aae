// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func percent(text string) v1alpha1.Percentage {
	return v1alpha1.Percentage{IntOrString: intstr.Parse(text)}
}

// divided is a release with a static split between a stable variation and others.
func divided(percentages map[string]string) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{}
	r.Spec.Stable = "stable"
	r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{}
	for _, name := range []string{"stable", "canary", "next"} {
		if text, has := percentages[name]; has {
			r.Spec.Variations = append(r.Spec.Variations, v1alpha1.Variation{Name: v1alpha1.VariationName(name)})
			r.Spec.TrafficSplit.Percentages[name] = percent(text)
		}
	}
	return r
}

func TestPlanSplit(t *testing.T) {
	two := map[string]string{"stable": "90", "canary": "10"}
	three := map[string]string{"stable": "80", "canary": "10", "next": "10"}
	type texts = map[string]string
	for name, tc := range map[string]struct {
		before, given, want texts
		refusal             string
	}{
		"the stable variation gets the rest":              {before: two, given: texts{"canary": "50"}, want: texts{"stable": "50", "canary": "50"}},
		"a percentage can have decimals":                  {before: two, given: texts{"canary": "0.25"}, want: texts{"stable": "99.75", "canary": "0.25"}},
		"the canary can get all requests":                 {before: two, given: texts{"canary": "100"}, want: texts{"stable": "0", "canary": "100"}},
		"a variation that is not given keeps its part":    {before: three, given: texts{"canary": "30"}, want: texts{"stable": "60", "canary": "30", "next": "10"}},
		"all percentages can be given":                    {before: two, given: texts{"stable": "75", "canary": "25"}, want: texts{"stable": "75", "canary": "25"}},
		"a stable percentage alone has to add up":         {before: two, given: texts{"stable": "75"}, refusal: "the percentages add up to 85, not to 100"},
		"others can leave too little":                     {before: three, given: texts{"canary": "95"}, refusal: "the percentages add up to 105, not to 100"},
		"a variation that is unknown is refused":          {before: two, given: texts{"cannary": "5"}, refusal: `it has no variation "cannary", but stable, canary`},
		"a text that is no percentage is refused":         {before: two, given: texts{"canary": "half"}, refusal: `"half" is no percentage from 0 to 100 with at most two decimals`},
		"more than all requests are refused":              {before: two, given: texts{"canary": "101"}, refusal: `"101" is no percentage from 0 to 100 with at most two decimals`},
		"less than a hundredth of a percent is no number": {before: two, given: texts{"canary": "0.001"}, refusal: `"0.001" is no percentage from 0 to 100 with at most two decimals`},
		"a negative percentage is refused":                {before: two, given: texts{"canary": "-5"}, refusal: `"-5" is no percentage from 0 to 100 with at most two decimals`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PlanSplit(divided(tc.before), tc.given)
			if refusal := fmt.Sprint(err); (tc.refusal != "" || err != nil) && refusal != tc.refusal {
				t.Fatalf("the refusal is %q, want %q", refusal, tc.refusal)
			}
			var want map[string]v1alpha1.Percentage
			for variation, text := range tc.want {
				if want == nil {
					want = map[string]v1alpha1.Percentage{}
				}
				want[variation] = percent(text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("percentages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanSplit_LeavesReleasesWithRolloutsAlone(t *testing.T) {
	r := divided(map[string]string{"stable": "100", "canary": "0"})
	r.Spec.Rollout = &v1alpha1.Rollout{}
	if got, err := PlanSplit(r, map[string]string{"canary": "5"}); err == nil {
		t.Errorf("a release with a rollout got %v", got)
	}
}

// TestPlanSplit_GivesAwayAllRequests compares each plan with the schema: percentages of two decimals that add up to 100.
func TestPlanSplit_GivesAwayAllRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.IntRange(0, int(traffic.Total))
		before := divided(map[string]string{"stable": "0", "canary": "0", "next": traffic.Weight(weight.Draw(t, "next")).Percent()})
		planned, err := PlanSplit(before, map[string]string{"canary": traffic.Weight(weight.Draw(t, "canary")).Percent()})
		if err != nil {
			return
		}
		sum := traffic.Weight(0)
		for variation, p := range planned {
			w, ok := release.WeightOf(p)
			if !ok {
				t.Fatalf("%s has %q", variation, p.String())
			}
			sum += w
		}
		if sum != traffic.Total || len(planned) != 3 {
			t.Fatalf("%v add up to %d", planned, sum)
		}
	})
}
