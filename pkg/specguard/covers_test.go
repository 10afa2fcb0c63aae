// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestGuardSetCovers(t *testing.T) {
	stage := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "production"}}
	production, errs := Compile(GuardRef{Name: "production"}, v1alpha1.GuardSpec{Resources: deployments}, stage, testNow)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	set := NewGuardSet([]*Guard{
		production,
		CompileInert(GuardRef{Namespace: "broken", Name: "own"}, v1alpha1.GuardSpec{Resources: deployments}, nil, testNow),
		mustGuard(t, GuardRef{Namespace: "paused", Name: "own"}, func(s *v1alpha1.GuardSpec) {
			s.Suspend = &v1alpha1.Suspension{Reason: "move", EndTime: metav1.NewTime(testNow.Add(time.Hour))}
		}),
		mustGuard(t, GuardRef{Namespace: "labeled", Name: "gold"}, func(s *v1alpha1.GuardSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
		}),
	}, []string{"kube-system"}, System{})
	deployment := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	produces := map[string]string{"stage": "production"}
	for name, tc := range map[string]struct {
		set       *GuardSet
		gvk       canon.GVK
		namespace string
		labels    map[string]string
		unknown   bool
		want      bool
	}{
		"a namespace that a cluster guard selects":          {set: set, gvk: deployment, namespace: "a", labels: produces, want: true},
		"one that it does not select":                       {set: set, gvk: deployment, namespace: "a"},
		"one of which the labels are not known":             {set: set, gvk: deployment, namespace: "a", unknown: true, want: true},
		"another version of the kind":                       {set: set, gvk: canon.GVK{Group: "apps", Version: "v2", Kind: "Deployment"}, namespace: "a", labels: produces, want: true},
		"another kind":                                      {set: set, gvk: canon.GVK{Version: "v1", Kind: "ConfigMap"}, namespace: "a", labels: produces},
		"a guard that asks for labels, which an object had": {set: set, gvk: deployment, namespace: "labeled", want: true},
		"a suspended guard":                                 {set: set, gvk: deployment, namespace: "paused", want: true},
		"a guard that does not compile":                     {set: set, gvk: deployment, namespace: "broken", want: true},
		"an excluded namespace, whatever its labels":        {set: set, gvk: deployment, namespace: "kube-system", labels: produces},
		"no guard at all":                                   {gvk: deployment, namespace: "a", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.set.Covers(tc.gvk, tc.namespace, tc.labels, !tc.unknown); got != tc.want {
				t.Errorf("covered: %t, want %t", got, tc.want)
			}
		})
	}
}
