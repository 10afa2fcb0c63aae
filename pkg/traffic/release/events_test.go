// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func TestEventsOfAVariationThatLosesItsEndpoints(t *testing.T) {
	wanting := func(canary traffic.Weight) *release.Terms {
		terms, err := release.TermsOf(specified(t))
		if err != nil {
			t.Fatal(err)
		}
		terms.Wishes[0].Weight, terms.Wishes[1].Weight = traffic.Total-canary, canary
		return &terms
	}
	both, stable := map[string]int{"stable": 1, "canary": 1}, map[string]int{"stable": 1}
	for name, tc := range map[string]struct {
		before, ready map[string]int
		canary        traffic.Weight
		want          []release.Event
	}{
		"it loses them":          {both, stable, 1000, []release.Event{{Reason: release.Clamped, Message: "canary has no ready endpoints: its 10 % go to stable", Warning: true}}},
		"it still has none":      {stable, stable, 1000, nil},
		"it is to have no share": {stable, stable, 0, []release.Event{{Reason: release.SplitChanged, Message: "stable 100 / canary 0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := release.Decide(release.Facts{Terms: wanting(1000), Ready: both, Now: noon}).After
			before = release.Decide(release.Facts{Terms: wanting(1000), Before: before, Ready: tc.before, Now: noon}).After
			got := release.Decide(release.Facts{Terms: wanting(tc.canary), Before: before, Ready: tc.ready, Now: noon}).Events
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMatchWithoutValuesIsNoDecision(t *testing.T) {
	terms, err := release.TermsOf(specified(t))
	if err != nil {
		t.Fatal(err)
	}
	before := release.Decide(release.Facts{Terms: &terms, Now: noon}).After
	before.Split.Match.Values = map[string]string{}
	if release.Decide(release.Facts{Terms: &terms, Before: before, Now: noon}).Grew {
		t.Error("the sequence grew")
	}
}

func TestAProspectHasTheSharesThatAreWithheld(t *testing.T) {
	terms, err := release.TermsOf(specified(t))
	if err != nil {
		t.Fatal(err)
	}
	clamped := release.Decide(release.Facts{Terms: &terms, Ready: map[string]int{"stable": 1}, Now: noon}).After
	for name, tc := range map[string]struct {
		facts release.Facts
		want  string
	}{
		"of a spec":           {release.Facts{Terms: &terms}, "stable 90 / canary 10"},
		"of what is in force": {release.Facts{Before: clamped}, "stable 90 / canary 10"},
		"of nothing":          {release.Facts{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			split, is := tc.facts.Prospect()
			if got := release.Text(split.Shares); got != tc.want || is != (tc.want != "") {
				t.Errorf("got %q, %t; want %q", got, is, tc.want)
			}
		})
	}
}
