// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// M1 of the guard's review: of two guards that name two versions of a kind one was
// blind, and said that it was in force.
func TestOfTwoVersionsOfAKindOneIsJudged(t *testing.T) {
	const kindName = "HorizontalPodAutoscaler"
	m := mapper()
	m.Add(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: kindName}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: kindName}, meta.RESTScopeNamespace)
	v1, v2 := kind("autoscaling/v1", kindName), kind("autoscaling/v2", kindName)
	platform := func(r v1alpha1.GuardedResource) []v1alpha1.ClusterSpecGuard {
		g := v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "platform", CreationTimestamp: metav1.NewTime(epoch.Add(time.Hour))}}
		g.Spec.Resources = []v1alpha1.GuardedResource{r}
		return []v1alpha1.ClusterSpecGuard{g}
	}
	tenant := func(r ...v1alpha1.GuardedResource) []v1alpha1.SpecGuard {
		return []v1alpha1.SpecGuard{specGuard("tenant", r...)}
	}
	younger := specGuard("another", v2)
	younger.CreationTimestamp = metav1.NewTime(epoch.Add(time.Minute))
	hpas := []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	}
	tests := map[string]struct {
		in     Input
		want   []string // versions that are watched
		others map[string]string
	}{
		"the registered version, though the tenant names another": {
			in:   Input{Guards: tenant(v1, kind("apps/v1", "Deployment")), ClusterGuards: platform(v2), Registered: hpas},
			want: []string{"apps/v1", "autoscaling/v2"}, others: map[string]string{"SpecGuard/tenant": "autoscaling/v2, which the installation registers"},
		},
		"the registered version, though the only guard names another": {
			in:   Input{Guards: tenant(v1), Registered: hpas},
			want: []string{"autoscaling/v2"}, others: map[string]string{"SpecGuard/tenant": "autoscaling/v2, which the installation registers"},
		},
		"the registered version, though the platform names another": {
			in:   Input{ClusterGuards: platform(v1), Registered: hpas},
			want: []string{"autoscaling/v2"}, others: map[string]string{"ClusterSpecGuard/platform": "autoscaling/v2"},
		},
		"the registered version, though a guard names one that is not served": {
			in:   Input{Guards: tenant(kind("autoscaling/v2beta2", kindName)), Registered: hpas},
			want: []string{"autoscaling/v2"}, others: map[string]string{"SpecGuard/tenant": "not as autoscaling/v2beta2"},
		},
		"a kind that is not registered, as the platform's guard names it": {
			in:   Input{Guards: tenant(v1), ClusterGuards: platform(v2), Registered: hpas[:1]},
			want: []string{"autoscaling/v2"}, others: map[string]string{"SpecGuard/tenant": "autoscaling/v2, which another guard names"},
		},
		"a kind that is not registered, as the oldest guard names it": {
			in:   Input{Guards: append(tenant(v1), younger)},
			want: []string{"autoscaling/v1"}, others: map[string]string{"SpecGuard/another": "autoscaling/v1, which another guard names"},
		},
		"one version": {
			in: Input{Guards: tenant(v2), ClusterGuards: platform(v2), Registered: hpas}, want: []string{"autoscaling/v2"},
		},
		"another kind of the group is registered": {
			in:   Input{Guards: tenant(v1), Registered: []schema.GroupVersionResource{{Group: "autoscaling", Version: "v2", Resource: "others"}}},
			want: []string{"autoscaling/v1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Build(tc.in, m, epoch)
			if err != nil {
				t.Fatal(err)
			}
			watched := map[string]bool{}
			for gvk := range s.Resources {
				watched[gvk.GroupVersion().String()] = true
			}
			want := map[string]bool{}
			for _, version := range tc.want {
				want[version] = true
			}
			if diff := cmp.Diff(want, watched); diff != "" {
				t.Errorf("watched (-want +got):\n%s", diff)
			}
			if len(s.OtherVersions) != len(tc.others) || len(s.Problems) != 0 {
				t.Errorf("told %v, problems %v", s.OtherVersions, s.Problems)
			}
			for ref, problems := range s.OtherVersions {
				if text := FormatProblems(problems); !strings.Contains(text, "spec.resources[0].apiVersion: ") || !strings.Contains(text, tc.others[ref.String()]) {
					t.Errorf("%s is told %q", ref, text)
				}
			}
		})
	}
	if _, err := Build(Input{Guards: tenant(v1), Registered: hpas}, broken{}, epoch); err == nil {
		t.Error("the version is decided although the API server did not answer")
	}
}
