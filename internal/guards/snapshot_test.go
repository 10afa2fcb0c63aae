// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	epoch       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func mapper() *meta.DefaultRESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(deployments, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return m
}

// broken is a mapper of an API server that does not answer.
type broken struct{ meta.RESTMapper }

func (broken) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func specGuard(name string, resources ...v1alpha1.GuardedResource) v1alpha1.SpecGuard {
	return v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1alpha1.GuardSpec{Resources: resources},
	}
}

func kind(apiVersion, kind string) v1alpha1.GuardedResource {
	return v1alpha1.GuardedResource{APIVersion: apiVersion, Kind: kind}
}

func TestBuild(t *testing.T) {
	tests := map[string]struct {
		resources []v1alpha1.GuardedResource
		want      []string // path of each problem
		watched   int
		again     bool
	}{
		"a served kind is watched": {
			resources: []v1alpha1.GuardedResource{kind("apps/v1", "Deployment")}, watched: 1,
		},
		"a kind that is not served is told, and looked for again": {
			resources: []v1alpha1.GuardedResource{kind("apps/v1", "Deployment"), kind("example.org/v1", "Widget")},
			want:      []string{"spec.resources[1].kind"}, watched: 1, again: true,
		},
		"a cluster-scoped kind is told, and nothing can help but the guard": {
			resources: []v1alpha1.GuardedResource{kind("v1", "Node")},
			want:      []string{"spec.resources[0].kind"},
		},
		"a guard that does not compile is inert as a whole": {
			resources: []v1alpha1.GuardedResource{kind("v1", "Secret"), kind("apps/v1", "Deployment")},
			want:      []string{"spec.resources[0].kind"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Build(Input{Guards: []v1alpha1.SpecGuard{specGuard("g", tc.resources...)}}, mapper(), epoch)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range s.Problems[specguard.GuardRef{Namespace: "shop", Name: "g"}] {
				got = append(got, p.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if len(s.Watched()) != tc.watched || s.Again != tc.again {
				t.Errorf("%d kinds are watched, again is %t", len(s.Watched()), s.Again)
			}
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNoUnknownKind(t *testing.T) {
	_, err := Build(Input{Guards: []v1alpha1.SpecGuard{specGuard("g", kind("apps/v1", "Deployment"))}}, broken{}, epoch)
	if err == nil || kube.IsHopeless(err) {
		t.Errorf("the error is %v", err)
	}
}

// unavailable is a mapper of an API server that cannot tell one group, for a reason.
type unavailable struct {
	meta.RESTMapper
	why error
}

func (u unavailable) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Group == "metrics.example.com" {
		return nil, fmt.Errorf("%w: %s", u.why, gk.Group)
	}
	return u.RESTMapper.RESTMapping(gk, versions...)
}

func TestAKindThatTheServerDoesNotTellPutsOnlyItsOwnGuardsOutOfForce(t *testing.T) {
	for name, why := range map[string]error{
		"its group does not answer":                    kube.ErrGroupUnavailable,
		"no kind can be listed, and it was not served": kube.ErrKindsNotListed,
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Guards: []v1alpha1.SpecGuard{
				specGuard("theirs", kind("metrics.example.com/v1", "Metric")), specGuard("ours", kind("apps/v1", "Deployment")),
			}}
			s, err := Build(in, unavailable{mapper(), why}, epoch)
			if err != nil {
				t.Fatal(err)
			}
			theirs, ours := s.Problems[specguard.GuardRef{Namespace: "shop", Name: "theirs"}], s.Problems[specguard.GuardRef{Namespace: "shop", Name: "ours"}]
			if len(theirs) != 1 || len(ours) != 0 || len(s.Resources) != 1 || !s.Again {
				t.Errorf("problems %v and %v, %d kinds, again %t", theirs, ours, len(s.Resources), s.Again)
			}
		})
	}
}

func TestAGuardThatDoesNotCompileVetoesInASnapshot(t *testing.T) {
	broken := v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
	broken.Spec.Resources, broken.Spec.Mode = []v1alpha1.GuardedResource{kind("apps/v1", "Deployment")}, "Mystery"
	in := Input{Guards: []v1alpha1.SpecGuard{specGuard("ours", kind("apps/v1", "Deployment"))}, ClusterGuards: []v1alpha1.ClusterSpecGuard{broken}}
	s, err := Build(in, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	rules := s.Set.Rules(specguard.Query{Namespace: "shop", GVK: canon.ParseGVK("apps/v1", "Deployment"), Now: epoch})
	if got := rules.FindInertGuard(); got != "ClusterSpecGuard/platform" {
		t.Errorf("what vetoes is %q", got)
	}
}

func TestAGuardBeyondTheBoundOfItsNamespaceSaysSo(t *testing.T) {
	var in Input
	for i := range specguard.MaxNamespaceGuards + 1 {
		in.Guards = append(in.Guards, specGuard(fmt.Sprintf("g%03d", i), kind("apps/v1", "Deployment")))
	}
	s, err := Build(in, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	last := specguard.GuardRef{Namespace: "shop", Name: fmt.Sprintf("g%03d", specguard.MaxNamespaceGuards)}
	if len(s.Problems) != 1 || len(s.Problems[last]) != 1 || s.Problems[last][0].Path != "metadata.namespace" {
		t.Errorf("problems: %v", s.Problems)
	}
}
