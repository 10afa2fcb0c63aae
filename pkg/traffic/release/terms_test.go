// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
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
