// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func TestAFreshControlHasTheEndOfTheRanges(t *testing.T) {
	_, terms := running(t)
	for name, tc := range map[string]struct {
		canary, control traffic.Weight
		want            []traffic.Segment
	}{
		"a control without requests":       {0, 0, []traffic.Segment{{Variation: "a", Weight: 10_000}}},
		"as much as the canary":            {1_000, 1_000, []traffic.Segment{{Variation: "b", Weight: 1_000}, {Variation: "a", Weight: 5_700}, {Variation: "fresh-control", Weight: 1_000}, {Variation: "a", Weight: 2_300}}},
		"a third":                          {3_300, 3_300, []traffic.Segment{{Variation: "b", Weight: 3_300}, {Variation: "a", Weight: 3_400}, {Variation: "fresh-control", Weight: 3_300}}},
		"no control has more than a third": {4_000, 4_000, []traffic.Segment{{Variation: "b", Weight: 4_000}, {Variation: "a", Weight: 2_700}, {Variation: "fresh-control", Weight: 3_300}}},
		"a canary that needs the range":    {7_000, 1_000, []traffic.Segment{{Variation: "b", Weight: 7_000}, {Variation: "a", Weight: 3_000}}},
		"a canary that has all":            {10_000, 3_300, []traffic.Segment{{Variation: "b", Weight: 10_000}}},
	} {
		t.Run(name, func(t *testing.T) {
			compared := terms.Shift("a", tc.canary).Compare(tc.control)
			d := release.Decide(release.Facts{Terms: &compared, Now: noon})
			if err := d.After.Split.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, d.After.Split.Shares.Layout()); diff != "" {
				t.Errorf("the layout (-want +got):\n%s", diff)
			}
			without := compared.Shift("a", tc.canary)
			if diff := cmp.Diff(terms.Shift("a", tc.canary).Split, without.Split); diff != "" || len(without.Wishes) != 2 || without.Wishes[0].Weight+tc.canary != traffic.Total {
				t.Errorf("without the control again there is %+v (-want +got):\n%s", without.Wishes, diff)
			}
		})
	}
}

// A control that comes, grows and goes moves no visitor of the canary, and no event says so.
func TestAFreshControlMovesNoVisitorOfTheCanary(t *testing.T) {
	_, terms := running(t)
	ready := map[string]int{"a": 1, "b": 1, "fresh-control": 1}
	var before *release.State
	for _, step := range []struct {
		canary, control traffic.Weight
		has             bool
	}{{0, 0, true}, {1_000, 1_000, true}, {3_300, 3_300, true}, {5_000, 0, false}, {10_000, 0, false}} {
		next := terms.Shift("a", step.canary)
		if step.has {
			next = next.Compare(step.control)
		}
		d := release.Decide(release.Facts{Terms: &next, Before: before, Ready: ready, Prepares: true, Now: noon})
		for _, e := range d.Events {
			if e.Reason == release.ReservationsMoved {
				t.Errorf("at %d: %s", step.canary, e.Message)
			}
		}
		before = d.After
	}
}

// The endpoints of the active variation serve the canary and the control in a cohort check, and in the state that
// the rollback of the check prepares both have their own again.
func TestACohortCheckComparesTwoGroupsOfVisitors(t *testing.T) {
	_, terms := running(t)
	checked := terms.Shift("a", 1_000).Compare(1_000).Check()
	d := release.Decide(release.Facts{Terms: &checked, Ready: map[string]int{"a": 1, "b": 1, "fresh-control": 1}, Prepares: true, Now: noon})
	by := func(s *release.State) (by []string) {
		for _, v := range s.Split.Variations {
			by = append(by, v.Name+" by "+v.ServedBy)
		}
		return by
	}
	if diff := cmp.Diff([]string{"a by ", "b by a", "fresh-control by a"}, by(d.After)); diff != "" {
		t.Errorf("in a check (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a by ", "b by ", "fresh-control by "}, by(d.After.Retreated())); diff != "" {
		t.Errorf("after its rollback (-want +got):\n%s", diff)
	}
}
