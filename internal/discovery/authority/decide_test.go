// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	injects, proxies, neither := Place{Injects: true}, Place{Proxies: true}, Place{}
	copied := Present{Ours: true, Bundle: "new"}
	tests := map[string]struct {
		place   Place
		present *Present
		bundle  string
		want    Action
	}{
		"a namespace that opted in gets a copy":                {injects, nil, "new", Make},
		"one with a proxied pod gets one too":                  {proxies, nil, "new", Make},
		"one without proxies gets none":                        {neither, nil, "new", Leave},
		"a copy that is right stays":                           {injects, &copied, "new", Leave},
		"an older bundle is replaced":                          {injects, &Present{Ours: true, Bundle: "old"}, "new", Mend},
		"what somebody emptied is filled":                      {injects, &Present{Ours: true}, "new", Mend},
		"what somebody added is removed":                       {injects, &Present{Ours: true, Bundle: "new", More: true}, "new", Mend},
		"what cannot be changed is made anew":                  {injects, &Present{Ours: true, Bundle: "old", Immutable: true}, "new", Replace},
		"an immutable one with the right bundle may stay":      {injects, &Present{Ours: true, Bundle: "new", Immutable: true}, "new", Leave},
		"who opted out and has no proxy left loses it":         {neither, &copied, "new", Remove},
		"who opted out keeps it as long as a proxy is there":   {proxies, &copied, "new", Leave},
		"a bundle that is not known makes no copy":             {injects, nil, "", Leave},
		"a bundle that is not known empties no copy":           {injects, &copied, "", Leave},
		"a copy goes also when the bundle is not known":        {neither, &copied, "", Remove},
		"somebody else's is reported where we need the name":   {injects, &Present{Bundle: "theirs"}, "new", Report},
		"somebody else's is nothing to us elsewhere":           {neither, &Present{Bundle: "theirs"}, "new", Leave},
		"nothing is made in a namespace that ends":             {Place{Ending: true, Injects: true}, nil, "new", Leave},
		"nothing is removed from a namespace that ends":        {Place{Ending: true}, &copied, "new", Leave},
		"the original is none of our copies, whatever is said": {Place{Original: true}, &copied, "new", Leave},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.place, tc.present, tc.bundle); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Carried out, every decision is the last one, and nothing of anybody else's changes.
func TestADecisionIsCarriedOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := Place{
			Original: rapid.Bool().Draw(t, "original"), Ending: rapid.Bool().Draw(t, "ending"),
			Injects: rapid.Bool().Draw(t, "injects"), Proxies: rapid.Bool().Draw(t, "proxies"),
		}
		bundle := rapid.SampledFrom([]string{"", "old", "new"}).Draw(t, "bundle")
		var present *Present
		if rapid.Bool().Draw(t, "there") {
			present = &Present{
				Ours: rapid.Bool().Draw(t, "ours"), Bundle: rapid.SampledFrom([]string{"", "old", "new"}).Draw(t, "has"),
				More: rapid.Bool().Draw(t, "more"), Immutable: rapid.Bool().Draw(t, "immutable"),
			}
		}
		action := Decide(place, present, bundle)
		if action != Leave && action != Report && (place.Original || place.Ending || (present != nil && !present.Ours)) {
			t.Fatalf("%s of %+v in %+v", action, present, place)
		}
		after := carried(action, present, bundle)
		if again := Decide(place, after, bundle); again != Leave && again != Report {
			t.Fatalf("after %s: %s", action, again)
		}
		if place.wants() && !place.Ending && !place.Original && bundle != "" && action != Report && (after == nil || after.Bundle != bundle) {
			t.Fatalf("after %s pods find %+v", action, after)
		}
	})
}

func carried(action Action, present *Present, bundle string) *Present {
	switch action {
	case Leave, Report:
		return present
	case Remove:
		return nil
	case Make, Mend, Replace:
		return &Present{Ours: true, Bundle: bundle}
	default:
		panic("an action that nobody carries out")
	}
}
