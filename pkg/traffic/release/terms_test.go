// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// The API server refuses such specs; one that was stored by an older version of the
// kind is inert and says why.
func TestASpecWithTooFewVariationsIsRefusedAndDoesNotPanic(t *testing.T) {
	for name, variations := range map[string][]v1alpha1.Variation{"none": nil, "one": {{Name: "stable", Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "b"}}}}} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{Spec: v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "stable", Variations: variations}}
			r.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{}}
			for _, v := range variations {
				r.Spec.TrafficSplit.Percentages[string(v.Name)] = v1alpha1.Percent(100)
			}
			if _, err := release.TermsOf(r); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// L4: attributes of the visitors' cookie go from the spec through the status to proxies.
func TestAttributesOfTheCookieAreInForce(t *testing.T) {
	selected := func(value v1alpha1.LabelValue) *v1alpha1.PodSelector {
		return &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"version": value}}
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}, Spec: v1alpha1.ABReleaseSpec{
		ServiceName: "web", Stable: "stable",
		Variations: []v1alpha1.Variation{{Name: "stable", Selector: selected("a")}, {Name: "canary", Selector: selected("b")}},
		TrafficSplit: v1alpha1.TrafficSplit{
			Type: v1alpha1.TrafficSplitSticky, Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(90), "canary": v1alpha1.Percent(10)},
			Sticky: &v1alpha1.Sticky{Cookie: "visitor", Domain: "example.com", Secure: v1alpha1.CookieSecureAlways},
		},
	}}
	terms, err := release.TermsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	state := &release.State{Split: terms.Split}
	state.Split.Shares, _ = traffic.Reserve(terms.Wishes, nil)
	state.Write(&r.Status)
	split, _ := release.SplitOf(r)
	if d := cmp.Diff(traffic.Key{Kind: traffic.ByVisitor, Name: "visitor", Domain: "example.com", Secure: true}, split.Key); d != "" {
		t.Errorf("the key in force (-want +got):\n%s", d)
	}
}

// H1 of the review of the pages: the order of a list that appliers merge decided which variation is the
// stable one, and where the ranges of the others are.
func TestTheOrderOfTheListDecidesNothing(t *testing.T) {
	variation := func(name v1alpha1.VariationName) v1alpha1.Variation {
		return v1alpha1.Variation{Name: name, Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"v": v1alpha1.LabelValue(name)}}}
	}
	for name, tc := range map[string]struct {
		spec, inForce []v1alpha1.VariationName
		want          []string
	}{
		"nothing is in force: by name":             {spec: []v1alpha1.VariationName{"c", "stable", "a", "b"}, want: []string{"stable", "a", "b", "c"}},
		"what is in force keeps its place":         {spec: []v1alpha1.VariationName{"a", "b", "stable"}, inForce: []v1alpha1.VariationName{"stable", "b", "a"}, want: []string{"stable", "b", "a"}},
		"what comes is behind":                     {spec: []v1alpha1.VariationName{"a", "b", "stable"}, inForce: []v1alpha1.VariationName{"stable", "b"}, want: []string{"stable", "b", "a"}},
		"another one becomes the stable variation": {spec: []v1alpha1.VariationName{"stable", "v1", "v2"}, inForce: []v1alpha1.VariationName{"v1", "v2", "stable"}, want: []string{"stable", "v1", "v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{Spec: v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "stable"}}
			r.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{}}
			for _, v := range tc.spec {
				r.Spec.Variations = append(r.Spec.Variations, variation(v))
				r.Spec.TrafficSplit.Percentages[string(v)] = v1alpha1.Percent(0)
			}
			r.Spec.TrafficSplit.Percentages["stable"] = v1alpha1.Percent(100)
			if tc.inForce != nil {
				r.Status.Effective = &v1alpha1.EffectiveSplit{}
				for _, v := range tc.inForce {
					r.Status.Effective.Variations = append(r.Status.Effective.Variations, v1alpha1.EffectiveVariation{Name: v})
				}
			}
			terms, err := release.TermsOf(r)
			if err != nil {
				t.Fatal(err)
			}
			var wishes, variations []string
			for i := range terms.Wishes {
				wishes, variations = append(wishes, terms.Wishes[i].Variation), append(variations, terms.Split.Variations[i].Name)
			}
			if d := cmp.Diff([][]string{tc.want, tc.want}, [][]string{wishes, variations}); d != "" {
				t.Errorf("shares and variations (-want +got):\n%s", d)
			}
		})
	}
}

// H2 of the review of the pages: less than a percent of a large Service was no first step.
func TestPercentagesHaveTwoDecimals(t *testing.T) {
	for name, tc := range map[string]struct {
		stable, canary v1alpha1.Percentage
		want           traffic.Weight
		err            string
	}{
		"whole numbers":               {stable: v1alpha1.Percent(90), canary: v1alpha1.Percent(10), want: 1000},
		"a quarter of a percent":      {stable: decimal("99.75"), canary: decimal("0.25"), want: 25},
		"one decimal":                 {stable: decimal("99.9"), canary: decimal("0.1"), want: 10},
		"what binary floats round":    {stable: decimal("99.71"), canary: decimal("0.29"), want: 29},
		"all of it, with decimals":    {stable: v1alpha1.Percent(0), canary: decimal("100.00"), want: 10_000},
		"three decimals are refused":  {stable: decimal("99.875"), canary: decimal("0.125"), err: `spec.trafficSplit.percentages: "99.875" of stable is no number with at most two decimals`},
		"more than all is refused":    {stable: v1alpha1.Percent(-1), canary: v1alpha1.Percent(101), err: `spec.trafficSplit.percentages: "-1" of stable is no number with at most two decimals`},
		"a hundred and a half":        {stable: decimal("100.5"), canary: v1alpha1.Percent(0), err: "the weight of stable is 10050, want 0 to 10000\nthe weights add up to 10050, want 10000"},
		"a sum beyond all is refused": {stable: decimal("99.75"), canary: decimal("0.26"), err: "the weights add up to 10001, want 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			r := specified(t)
			r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": tc.stable, "canary": tc.canary}
			terms, err := release.TermsOf(r)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("the error is %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || terms.Wishes[1].Weight != tc.want || terms.Wishes[0].Weight != traffic.Total-tc.want {
				t.Errorf("the weights are %+v, %v; want %d of the canary", terms.Wishes, err, tc.want)
			}
		})
	}
}

// H7 of the review of the pages: a release that was restored from a backup has another uid, and each
// visitor was drawn anew.
func TestARestoreMovesNoVisitor(t *testing.T) {
	salt := func(change func(*v1alpha1.ABRelease)) string {
		r := specified(t)
		change(r)
		terms, err := release.TermsOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return terms.Split.Salt
	}
	before := salt(func(*v1alpha1.ABRelease) {})
	if after := salt(func(r *v1alpha1.ABRelease) { r.UID = "another" }); after != before || before == "" || len(before) > 64 {
		t.Errorf("the salt is %q, and %q after a restore", before, after)
	}
	if other := salt(func(r *v1alpha1.ABRelease) { r.Name = "pay" }); other == before {
		t.Error("visitors of another release are drawn alike")
	}
	if own := salt(func(r *v1alpha1.ABRelease) { r.Spec.Salt = "spring-sale" }); own != "spring-sale" {
		t.Errorf("the salt of the spec is %q", own)
	}
}

func decimal(text string) v1alpha1.Percentage {
	return v1alpha1.Percentage{IntOrString: intstr.FromString(text)}
}

func TestAReturnGivesAllRequestsToTheStableVariation(t *testing.T) {
	terms := release.Terms{Wishes: []traffic.Wish{{Variation: "stable", Weight: 7_000}, {Variation: "a", Weight: 2_000, Reserves: true, Reserved: 5_000}, {Variation: "b", Weight: 1_000}}}
	want := []traffic.Wish{{Variation: "stable", Weight: traffic.Total}, {Variation: "a", Reserves: true, Reserved: 5_000}, {Variation: "b"}}
	if d := cmp.Diff(want, terms.Return().Wishes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if terms.Wishes[0].Weight != 7_000 {
		t.Error("the terms themselves have changed")
	}
}
