// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var pods = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// M8 of the guard's review: each edit of a guard judged each object of the cluster anew.
func TestAGuardThatChangesConcernsTheObjectsOfItsScopeAlone(t *testing.T) {
	namespaceOf := func(name string, labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	base := func() Input {
		shop := specGuard("g", kind("apps/v1", "Deployment"))
		cluster := v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Generation: 1}}
		cluster.Spec.Resources = []v1alpha1.GuardedResource{kind("v1", "Pod")}
		return Input{
			Guards: []v1alpha1.SpecGuard{shop}, ClusterGuards: []v1alpha1.ClusterSpecGuard{cluster},
			Namespaces: []metav1.PartialObjectMetadata{namespaceOf("shop", nil), namespaceOf("bank", nil)},
		}
	}
	inShop := func(gvk schema.GroupVersionKind) kube.Key { return kube.Key{GroupVersionKind: gvk, Namespace: "shop"} }
	inBank := func(gvk schema.GroupVersionKind) kube.Key { return kube.Key{GroupVersionKind: gvk, Namespace: "bank"} }
	everything := []kube.Key{inShop(deployments), inShop(pods), inBank(deployments), inBank(pods)}
	for name, tc := range map[string]struct {
		change func(*Input)
		// looked at, and among these judged by other rules.
		looked, judged []kube.Key
		expired        bool
	}{
		"nothing": {change: func(*Input) {}},
		"an edit of a SpecGuard": {
			change: func(in *Input) { in.Guards[0].Generation++ },
			looked: everything[:1], judged: everything[:1],
		},
		"a SpecGuard of another kind beside it": {
			change: func(in *Input) {
				g := specGuard("h", kind("v1", "Pod"))
				g.Namespace = "bank"
				in.Guards = append(in.Guards, g)
			},
			looked: everything[3:], judged: everything[3:],
		},
		"a SpecGuard that is made anew under its name": {
			change: func(in *Input) { in.Guards[0].UID = "other" },
			looked: everything[:1], judged: everything[:1],
		},
		"a SpecGuard that is removed": {
			change: func(in *Input) { in.Guards = nil },
			looked: []kube.Key{inShop(deployments), inBank(deployments)}, judged: []kube.Key{inShop(deployments), inBank(deployments)},
		},
		"an edit of a ClusterSpecGuard": {
			change: func(in *Input) { in.ClusterGuards[0].Generation++ },
			looked: []kube.Key{inShop(pods), inBank(pods)}, judged: []kube.Key{inShop(pods), inBank(pods)},
		},
		"a label of a namespace": {
			change: func(in *Input) { in.Namespaces[1].Labels = map[string]string{"tier": "gold"} },
			looked: everything[2:],
		},
		"a suspension that ends": {
			change:  func(*Input) {},
			expired: true,
			looked:  everything[:1], judged: everything[:1],
		},
		"a guard over a kind that is not served is told, and judges no object": {
			change: func(in *Input) {
				g := specGuard("h", kind("nobody.example.com/v1", "Nothing"))
				in.Guards = append(in.Guards, g)
			},
			looked: []kube.Key{inShop(schema.FromAPIVersionAndKind("nobody.example.com/v1", "Nothing"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapper()
			m.Add(pods, meta.RESTScopeNamespace)
			was := base()
			if tc.expired {
				was.Guards[0].Spec.Suspend = &v1alpha1.Suspension{Reason: "maintenance", EndTime: metav1.NewTime(epoch)}
			}
			before, err := Build(was, m, epoch)
			if err != nil {
				t.Fatal(err)
			}
			before.noteChanges(nil, changedRules(nil, before, Input{}, was, false))
			is := base()
			if tc.expired {
				is = was
			}
			tc.change(&is)
			after, err := Build(is, m, epoch)
			if err != nil {
				t.Fatal(err)
			}
			rules := changedRules(before, after, was, is, tc.expired)
			after.noteChanges(before, rules)
			looks := changedNamespaces(before, after, rules)
			for _, key := range append(everything, tc.looked...) {
				if got, want := looks.ContainObject(key), slices.Contains(tc.looked, key); got != want {
					t.Errorf("%v is looked at: %t", key, got)
				}
				if got, want := after.FindEpoch(key) != before.FindEpoch(key), slices.Contains(tc.judged, key); got != want {
					t.Errorf("%v is judged anew: %t", key, got)
				}
			}
		})
	}
}

// A tenant at the bound of guards decides by each guard which others are in force.
func TestAGuardOfACrowdedNamespaceConcernsAllKindsOfTheNamespace(t *testing.T) {
	var was Input
	for i := range specguard.MaxNamespaceGuards + 1 {
		g := specGuard(string(rune('a'+i/26))+string(rune('a'+i%26)), kind("apps/v1", "Deployment"))
		was.Guards = append(was.Guards, g)
	}
	was.Namespaces = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	is := was
	is.Guards = was.Guards[1:]
	before, err := Build(was, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Build(is, mapper(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	changed := changedRules(before, after, was, is, false)
	if !changed.ContainObject(kube.Key{GroupVersionKind: pods, Namespace: "shop"}) || changed.ContainObject(kube.Key{GroupVersionKind: pods, Namespace: "bank"}) {
		t.Errorf("it concerns %v", changed)
	}
}

func TestEpochsOfNamespacesThatAreGoneAreDropped(t *testing.T) {
	var before *Snapshot
	for i := range 100 {
		after := &Snapshot{kinds: map[schema.GroupKind]judged{deployments.GroupKind(): {}}, Namespaces: map[string]Namespace{"shop": {}}}
		after.noteChanges(before, Scopes{{"shop", deployments.GroupKind()}: {}, {string(rune('a' + i)), deployments.GroupKind()}: {}, {"shop", schema.GroupKind{Kind: string(rune('a' + i))}}: {}})
		before = after
	}
	if len(before.epochs) != 1 || before.FindEpoch(kube.Key{GroupVersionKind: deployments, Namespace: "shop"}) != 100 {
		t.Errorf("epochs %v", before.epochs)
	}
}
