// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// The API server refuses such specs; one that was stored by an older version of the
// kind is inert and says why.
func TestASpecWithTooFewVariationsIsRefusedAndDoesNotPanic(t *testing.T) {
	for name, variations := range map[string][]v1alpha1.Variation{"none": nil, "one": {{Name: "stable", Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "b"}}}}} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{Spec: v1alpha1.ABReleaseSpec{Service: "web", Variations: variations}}
			r.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{}}
			for _, v := range variations {
				r.Spec.TrafficSplit.Percentages[string(v.Name)] = 100
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
		Service:    "web",
		Variations: []v1alpha1.Variation{{Name: "stable", Selector: selected("a")}, {Name: "canary", Selector: selected("b")}},
		TrafficSplit: v1alpha1.TrafficSplit{
			Type: v1alpha1.TrafficSplitSticky, Percentages: map[string]v1alpha1.Percentage{"stable": 90, "canary": 10},
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
	if d := cmp.Diff(ir.Key{Kind: ir.ByVisitor, Name: "visitor", Domain: "example.com", Secure: true}, split.Key); d != "" {
		t.Errorf("the key in force (-want +got):\n%s", d)
	}
}
