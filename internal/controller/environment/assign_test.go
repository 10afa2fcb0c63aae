// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
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

func TestStatus(t *testing.T) {
	tests := map[string]struct {
		share       Share
		wantReady   metav1.ConditionStatus
		wantOverlap string
	}{
		"in force": {share: Share{Namespaces: []string{"a", "b"}}, wantReady: metav1.ConditionTrue},
		"a bad selector stalls": {
			share: Share{Invalid: fmt.Errorf("spec.namespaceSelector: bad")}, wantReady: metav1.ConditionFalse,
		},
		"an overlap names the owner and stays ready": {
			share:       Share{Overlaps: []Overlap{{Namespace: "shop", Owner: "prod"}}},
			wantReady:   metav1.ConditionTrue,
			wantOverlap: "shop belongs to prod",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := env("dev", v1alpha1.CriticalityDevelopment, 0, nil)
			status(e, tc.share, condition.Set{Conditions: &e.Status.Conditions, Now: epoch})
			ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tc.wantReady {
				t.Errorf("Ready is %v, want %s", ready, tc.wantReady)
			}
			if int(e.Status.Namespaces) != len(tc.share.Namespaces) {
				t.Errorf("counts %d namespaces, want %d", e.Status.Namespaces, len(tc.share.Namespaces))
			}
			overlap := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDegraded)
			switch {
			case overlap == nil || tc.wantOverlap == "" && overlap.Status == metav1.ConditionTrue:
				t.Errorf("unexpected overlap: %+v", overlap)
			case tc.wantOverlap != "" && (overlap.Status != metav1.ConditionTrue || !strings.Contains(overlap.Message, tc.wantOverlap)):
				t.Errorf("overlap is %v, want %q in it", overlap, tc.wantOverlap)
			}
		})
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

func TestAnEnvironmentAlwaysHasItsConditions(t *testing.T) {
	for name, share := range map[string]Share{
		"in force":               {Namespaces: []string{"a"}},
		"with a bad selector":    {Invalid: fmt.Errorf("spec.namespaceSelector: bad")},
		"that overlaps":          {Overlaps: []Overlap{{Namespace: "shop", Owner: "prod"}}},
		"that has no namespaces": {},
	} {
		t.Run(name, func(t *testing.T) {
			e := env("dev", v1alpha1.CriticalityDevelopment, 0, nil)
			e.Generation = 3
			status(e, share, condition.Set{Conditions: &e.Status.Conditions, Generation: e.Generation, Now: epoch})
			conditions.CheckAlways(t, e.Status.Conditions, 3, v1alpha1.ConditionReady, v1alpha1.ConditionDegraded)
		})
	}
}
