// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// M4 of the review of the mesh: since when connections of a Service are divided is stored with the
// decision, so that another process goes by the same time.
func TestSinceWhenAServiceIsManaged(t *testing.T) {
	r := specified(t)
	terms, err := release.TermsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	hour := noon.Add(-time.Hour)
	stored := func(since time.Time) *release.State {
		d := release.Decide(release.Facts{Terms: &terms, Now: noon})
		d.After.ManagedSince = since
		return d.After
	}
	tests := map[string]struct {
		before  *release.State
		labeled time.Time
		refused bool
		want    time.Time
	}{
		"from the first decision on":                 {nil, time.Time{}, false, noon},
		"from the label on, if that was before":      {nil, hour, false, hour},
		"not from a label that is to come":           {nil, noon.Add(time.Hour), false, noon},
		"it stays":                                   {stored(hour), noon.Add(-time.Minute), false, hour},
		"a state without the time stays without":     {stored(time.Time{}), hour, false, time.Time{}},
		"a Service that is refused is not":           {stored(hour), hour, true, noon},
		"of a refused one it is stored once a while": {stored(noon.Add(-59 * time.Second)), hour, true, noon.Add(-59 * time.Second)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := release.Decide(release.Facts{Terms: &terms, Before: tc.before, Now: noon.Add(time.Millisecond), LabeledSince: tc.labeled, Refused: tc.refused})
			if got := d.After.ManagedSince; !got.Equal(tc.want) {
				t.Errorf("it is managed since %s, want %s", got, tc.want)
			}
			if tc.before != nil && d.Grew {
				t.Error("the time alone is a decision")
			}
		})
	}
}

// A store that was put back is behind proxies, which never go back to a lower sequence.
func TestTheNextSequenceIsAboveAllThatAreKnown(t *testing.T) {
	terms, err := release.TermsOf(specified(t))
	if err != nil {
		t.Fatal(err)
	}
	inForce := release.Decide(release.Facts{Terms: &terms, Floor: 6, Now: noon}).After
	for name, tc := range map[string]struct {
		before       *release.State
		floor, ahead uint64
		want         uint64
		grew         bool
	}{
		"the first decision of all":         {nil, 0, 0, 1, true},
		"the first one above the floor":     {nil, 6, 0, 7, true},
		"the first one above proxies":       {nil, 6, 9, 10, true},
		"proxies ahead of what is in force": {inForce, 6, 9, 10, true},
		"proxies at what is in force":       {inForce, 6, 7, 8, true},
		"a floor above proxies":             {inForce, 20, 9, 21, true},
		"no proxy ahead":                    {inForce, 20, 0, 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := release.Decide(release.Facts{Terms: &terms, Before: tc.before, Floor: tc.floor, Ahead: tc.ahead, Now: noon})
			if got := d.After.Split.Sequence; got != tc.want || d.Grew != tc.grew {
				t.Errorf("sequence %d, grew %t; want %d, %t", got, d.Grew, tc.want, tc.grew)
			}
		})
	}
}

func specified(t *testing.T) *v1alpha1.ABRelease {
	t.Helper()
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, workload: {kind: Deployment, name: canary}}]
trafficSplit: {type: Percentage, percentages: {stable: 90, canary: 10}}`), &r.Spec); err != nil {
		t.Fatal(err)
	}
	return r
}
