// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A tenant fills labels and SpecGuards; neither may make a status too large to store.
// A tenant fills labels and SpecGuards. The selection leaves room for the rest of the
// status, and what a tenant fills displaces no label that a ClusterSpecGuard needs.
func TestASelectionIsBounded(t *testing.T) {
	const platformGuards = 40
	for name, label := range map[string]func(i int) (key, value string){
		"long labels":  func(i int) (string, string) { return fmt.Sprintf("%0250d/%063d", i, i), strings.Repeat("v", 63) },
		"short labels": func(i int) (string, string) { return fmt.Sprintf("%04d", i), "" },
	} {
		t.Run(name, func(t *testing.T) {
			many := map[string]string{}
			for i := range 3000 {
				key, value := label(i)
				many[key] = value
			}
			keys := slices.Sorted(maps.Keys(many))
			requireAll := func(uid string, ref GuardRef, keys []string) *Guard {
				spec := v1alpha1.GuardSpec{Resources: deployments, Selector: &metav1.LabelSelector{}}
				for _, key := range keys {
					spec.Selector.MatchExpressions = append(spec.Selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
				}
				g, errs := Compile(ref, spec, nil, testNow)
				if len(errs) > 0 {
					t.Fatal(errs.ToAggregate())
				}
				return g.WithUID(types.UID(uid))
			}
			var guards []*Guard
			for i := range MaxNamespaceGuards {
				guards = append(guards, requireAll(fmt.Sprint("s", i), GuardRef{Namespace: "shop", Name: fmt.Sprint(i)}, keys[1000+30*i:min(1030+30*i, 2950)]))
			}
			for i := range platformGuards {
				guards = append(guards, requireAll(fmt.Sprint("platform", i), GuardRef{Name: fmt.Sprint("platform", i)}, keys[2950+i:2951+i]))
			}
			set := NewGuardSet(guards, nil, System{})
			rules := set.Rules(Query{Namespace: "shop", GVK: deploymentKind, Labels: []map[string]string{many}, Now: testNow})
			next := rules.nextSelection(nil, many)
			if size := encodedBytes(next); size > MaxStatusBytes/2 || len(next.Guards) != len(guards) {
				t.Errorf("%d bytes for %d guards", size, len(next.Guards))
			}
			for i := range next.Guards {
				if n := len(next.Guards[i].Labels); n > maxSelectionLabels {
					t.Errorf("%d labels of a guard, which the schema refuses", n)
				}
			}
			kept := set.Rules(Query{Namespace: "shop", GVK: deploymentKind, Kept: &v1alpha1.BaselineStatus{Selection: next}, Now: testNow}).Guards()
			for i := range platformGuards {
				if name := fmt.Sprint("ClusterSpecGuard/platform", i); !slices.Contains(kept, name) {
					t.Errorf("a tenant displaced what %s remembers", name)
				}
			}
		})
	}
}

// A guard that selects an object of few labels remembers all of them, as long as there
// is room, and those of its selector at least.
func TestGuardsThatRememberLittleDisplaceNoOther(t *testing.T) {
	var guards []*Guard
	seen := map[string]string{"pad": strings.Repeat("v", 63)}
	for i := range 100 {
		seen[fmt.Sprint("l", i)] = ""
	}
	for i := range 100 {
		spec := v1alpha1.GuardSpec{Resources: deployments, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("l", i): ""}}}
		g, errs := Compile(GuardRef{Name: fmt.Sprint("platform", i)}, spec, nil, testNow)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		guards = append(guards, g.WithUID(types.UID(fmt.Sprint("u", i))))
	}
	set := NewGuardSet(guards, nil, System{})
	rules := set.Rules(Query{Namespace: "shop", GVK: deploymentKind, Labels: []map[string]string{seen}, Now: testNow})
	next := rules.nextSelection(&v1alpha1.Selection{}, seen) // none of the labels were there at first
	kept := set.Rules(Query{Namespace: "shop", GVK: deploymentKind, Kept: &v1alpha1.BaselineStatus{Selection: next}, Now: testNow}).Guards()
	if len(kept) != len(guards) || encodedBytes(next) > MaxStatusBytes/2 {
		t.Errorf("%d of %d guards are kept by %d bytes", len(kept), len(guards), encodedBytes(next))
	}
}
