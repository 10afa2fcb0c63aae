// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func env(name string, c v1alpha1.Criticality, age time.Duration, match map[string]string) *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(-age))},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       c,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: match},
		},
	}
}

func TestNamespaceBelongsTo(t *testing.T) {
	shop := map[string]string{"team": "shop"}
	tests := map[string]struct {
		environments []*v1alpha1.Environment
		want         string
	}{
		"nobody when nothing picks it": {
			environments: []*v1alpha1.Environment{env("prod", v1alpha1.CriticalityProduction, 0, map[string]string{"team": "other"})},
		},
		"the only one that picks it": {
			environments: []*v1alpha1.Environment{env("dev", v1alpha1.CriticalityDevelopment, 0, shop)},
			want:         "dev",
		},
		"the more critical of two, though it is younger": {
			environments: []*v1alpha1.Environment{
				env("dev", v1alpha1.CriticalityDevelopment, time.Hour, shop),
				env("prod", v1alpha1.CriticalityProduction, 0, shop),
			},
			want: "prod",
		},
		"the older of two that are equally critical": {
			environments: []*v1alpha1.Environment{
				env("a-young", v1alpha1.CriticalityStaging, 0, shop),
				env("z-old", v1alpha1.CriticalityStaging, time.Hour, shop),
			},
			want: "z-old",
		},
		"the first by name of two that are alike": {
			environments: []*v1alpha1.Environment{
				env("b", v1alpha1.CriticalityStaging, 0, shop),
				env("a", v1alpha1.CriticalityStaging, 0, shop),
			},
			want: "a",
		},
		"nobody when the selector is empty, since that reads like a mistake": {
			environments: []*v1alpha1.Environment{env("all", v1alpha1.CriticalityProduction, 0, nil)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := Assign(tc.environments, map[string]labels.Set{"shop": {"team": "shop"}})
			got := ""
			if e := a.Of("shop"); e != nil {
				got = e.Name
			}
			if got != tc.want {
				t.Errorf("namespace belongs to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOverlapsAreToldOnEverySide(t *testing.T) {
	environments := []*v1alpha1.Environment{
		env("prod", v1alpha1.CriticalityProduction, 0, map[string]string{"team": "shop"}),
		env("dev", v1alpha1.CriticalityDevelopment, 0, map[string]string{"team": "shop"}),
	}
	a := Assign(environments, map[string]labels.Set{"shop": {"team": "shop"}})
	want := map[string]Share{
		"prod": {Namespaces: []string{"shop"}, Overlaps: []Overlap{{Namespace: "shop", Owner: "prod"}}},
		"dev":  {Overlaps: []Overlap{{Namespace: "shop", Owner: "prod"}}},
	}
	if diff := cmp.Diff(want, a.Share); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

// TestEachNamespaceHasOneOwner compares with the plain reading of the rule: look
// at every Environment, keep the best.
func TestEachNamespaceHasOneOwner(t *testing.T) {
	levels := []v1alpha1.Criticality{
		v1alpha1.CriticalityProduction, v1alpha1.CriticalityStaging, v1alpha1.CriticalityDevelopment, v1alpha1.CriticalityOther,
	}
	rapid.Check(t, func(t *rapid.T) {
		var environments []*v1alpha1.Environment
		for i := range rapid.IntRange(0, 5).Draw(t, "environments") {
			environments = append(environments, env(fmt.Sprintf("e%d", i),
				rapid.SampledFrom(levels).Draw(t, "criticality"),
				time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Hour,
				map[string]string{"team": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team")}))
		}
		namespaces := map[string]labels.Set{"x": {"team": "a"}, "y": {"team": "b"}, "z": {}}
		a := Assign(environments, namespaces)
		for namespace, set := range namespaces {
			var best *v1alpha1.Environment
			for _, e := range environments {
				if e.Spec.NamespaceSelector.MatchLabels["team"] != set["team"] {
					continue
				}
				if best == nil || compare(e, best) < 0 {
					best = e
				}
			}
			if a.Of(namespace) != best {
				t.Fatalf("%s belongs to %v, want %v", namespace, a.Of(namespace), best)
			}
		}
	})
}
