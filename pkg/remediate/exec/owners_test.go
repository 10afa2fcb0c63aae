// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// fakeOwners answers reads of metadata by kind and key.
type fakeOwners struct {
	client.Reader
	live  map[string]metav1.ObjectMeta
	fails error
}

func (f fakeOwners) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if f.fails != nil {
		return f.fails
	}
	live, has := f.live[o.GetObjectKind().GroupVersionKind().Kind+" "+key.String()]
	if !has {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.(*metav1.PartialObjectMetadata).ObjectMeta = live
	return nil
}

func TestOwnersAreAskedForWhereTheyLive(t *testing.T) {
	ending := metav1.Now()
	live := map[string]metav1.ObjectMeta{
		"Basket shop/a":  {UID: "uid-a"},
		"Basket other/b": {UID: "uid-b"},
		"Basket shop/c":  {UID: "uid-of-another-life"},
		"Basket shop/d":  {UID: "uid-d", DeletionTimestamp: &ending},
		"Planet /e":      {UID: "uid-e"},
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Basket"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Planet"}, meta.RESTScopeRoot)
	owners := schema.GroupResource{Group: "shop.example", Resource: "baskets"}
	tests := map[string]struct {
		kind, name string
		fails      error
		want       string
		unknown    bool
	}{
		"it lives":                          {"Basket", "a", nil, "", false},
		"it lives, and is cluster-scoped":   {"Planet", "e", nil, "", false},
		"it lives in another namespace":     {"Basket", "b", nil, "it is gone", false},
		"another object has its name":       {"Basket", "c", nil, "another object has its name", false},
		"it is being deleted":               {"Basket", "d", nil, "it is being deleted", false},
		"its kind is gone":                  {"Shelf", "a", nil, "the API server does not serve its kind", false},
		"it may not be read":                {"Basket", "a", apierrors.NewForbidden(owners, "a", errNetwork), "the executor may not get it", false},
		"the API server gives no answer":    {"Basket", "a", errNetwork, "", true},
		"the API server has an error of it": {"Basket", "a", apierrors.NewInternalError(errNetwork), "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader := OwnerReader{Client: fakeOwners{live: live, fails: test.fails}, Mapper: mapper, Reader: "the executor"}
			got, err := reader.Read(t.Context(), "shop", &v1alpha1.ObservedMetadata{OwnerReferences: []v1alpha1.ObservedOwner{
				{APIVersion: "shop.example/v1", Kind: test.kind, Name: test.name, UID: "uid-" + test.name},
			}})
			if (err != nil) != test.unknown {
				t.Fatalf("got %v", err)
			}
			if err == nil && (len(got) != 1 || got[0].Lost != test.want) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
	if got, err := (OwnerReader{}).Read(t.Context(), "shop", nil); got != nil || err != nil {
		t.Errorf("an object of which nothing is known has the owners %v, %v", got, err)
	}
}

// What could not be asked must not be left out: the executor asks again.
func TestNothingIsMadeBeforeItsOwnersAreKnown(t *testing.T) {
	w := newWorld(t)
	w.changeBaseline(func(b *v1alpha1.Baseline) {
		b.Status.Observed.Metadata = &v1alpha1.ObservedMetadata{OwnerReferences: []v1alpha1.ObservedOwner{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "uid-parent"},
		}}
	})
	delete(w.targets.objects, "web")
	w.failing("get *v1.PartialObjectMetadata", errNetwork)
	r := w.started(v1alpha1.StepReserved)
	r.target(0).UID = ""
	r.read(t.Context(), 0)
	r.load(t.Context(), 0)
	if got := r.try(t.Context(), 0); got.Result != protocol.Lost {
		t.Errorf("without an answer it is tried: %+v", got)
	}
	w.fails = nil
	got := r.try(t.Context(), 0)
	const lacks = "made again without its owner Deployment/parent (it is gone), without finalizers, and without annotations other than those of Helm"
	if diff := cmp.Diff([]string{string(protocol.Stored), lacks}, []string{string(got.Result), got.Lacks}); diff != "" {
		t.Errorf("the dry run (-want +got):\n%s", diff)
	}
	if w.targets.objects["web"] != nil {
		t.Error("a dry run made it")
	}
}
