// SPDX-License-Identifier: Apache-2.0

//go:build integration

package upgrade

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// object is one object of a kind.
type object struct {
	*kind
	name string
}

// baseline is the name of the Baseline of the object.
func (o object) baseline() string {
	r := o.groupResource()
	return specguard.BaselineName(r.Resource, r.Group, o.name)
}

// objectsOf names some objects of each kind.
func objectsOf(prefix string, each int, wanted func(*kind) bool) []object {
	var all []object
	for i := range kinds {
		for n := range each {
			if wanted(&kinds[i]) {
				all = append(all, object{&kinds[i], fmt.Sprintf("%s-%d", prefix, n)})
			}
		}
	}
	return all
}

// create makes objects as CI does.
func (w *world) create(objects []object) {
	w.t.Helper()
	c := w.As(ci)
	for _, o := range objects {
		if err := c.Create(w.Ctx(), o.object(w.t, w.Name, o.name)); err != nil {
			w.t.Fatalf("creating the %s %s: %v", o.kind.name, o.name, err)
		}
	}
}

// guardAll guards all kinds of the test.
func (w *world) guardAll() *v1alpha1.SpecGuard {
	w.t.Helper()
	return w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = nil
		for i := range kinds {
			g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: kinds[i].apiVersion, Kind: kinds[i].name})
		}
	})
}

// baselines are all Baselines of the namespace, by name.
func (w *world) baselines() (map[string]*v1alpha1.Baseline, error) {
	var list v1alpha1.BaselineList
	if err := w.cluster.Admin.List(w.Ctx(), &list, client.InNamespace(w.Name)); err != nil {
		return nil, err
	}
	byName := make(map[string]*v1alpha1.Baseline, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName, nil
}

// allAre waits until the Baseline of each object passes a check.
func (w *world) allAre(what string, objects []object, check func(object, *v1alpha1.Baseline) error) {
	w.t.Helper()
	w.Eventually(what, func() error {
		baselines, err := w.baselines()
		if err != nil {
			return err
		}
		var failing []string
		for _, o := range objects {
			b := baselines[o.baseline()]
			if b == nil {
				failing = append(failing, o.baseline()+" is missing")
			} else if err := check(o, b); err != nil {
				failing = append(failing, fmt.Sprintf("%s: %v; it is %s", b.Name, err, guarded.Describe(b)))
			}
		}
		if len(failing) > 0 {
			return fmt.Errorf("%d of %d are not: %s", len(failing), len(objects), strings.Join(failing[:min(5, len(failing))], "; "))
		}
		return nil
	})
}

// authorizes is a check that a Baseline is in sync with a revision.
func authorizes(number int64) func(object, *v1alpha1.Baseline) error {
	return func(_ object, b *v1alpha1.Baseline) error {
		if guarded.Describe(b) != "InSync" || guarded.Authorized(b) != number {
			return fmt.Errorf("revision %d is authorized, want %d", guarded.Authorized(b), number)
		}
		if b.Status.ObservedGeneration != b.Generation || b.Status.Observed.Hash != b.Spec.Authorized.Hash {
			return fmt.Errorf("the status is of generation %d, the spec of %d", b.Status.ObservedGeneration, b.Generation)
		}
		return nil
	}
}

// served reads all objects of the kinds as the API server serves them, by kind and name.
func (w *world) served() map[string]map[string]any {
	w.t.Helper()
	all := map[string]map[string]any{}
	for i := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kinds[i].gvk())
		w.Must(w.cluster.Admin.List(w.Ctx(), list, client.InNamespace(w.Name)))
		for _, item := range list.Items {
			content := maps.Clone(item.Object)
			delete(content, "metadata")
			delete(content, "status")
			all[kinds[i].name+" "+item.GetName()] = content
		}
	}
	return all
}

// differences lists the paths at which two values differ.
func differences(path string, before, after any) []string {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			var out []string
			for key := range union(b, a) {
				out = append(out, differences(path+"/"+key, b[key], a[key])...)
			}
			return out
		}
	case []any:
		if a, ok := after.([]any); ok && len(a) == len(b) {
			var out []string
			for i := range b {
				out = append(out, differences(fmt.Sprintf("%s/%d", path, i), b[i], a[i])...)
			}
			return out
		}
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v -> %v", path, before, after)}
}

func union(maps ...map[string]any) map[string]bool {
	keys := map[string]bool{}
	for _, m := range maps {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}

func (w *world) discovery() *discovery.DiscoveryClient {
	w.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.server.Config)
	must(w.t, err)
	return d
}

// guardable lists the built-in kinds of the API server that a guard may name.
func (w *world) guardable() []schema.GroupKind {
	w.t.Helper()
	kinds, err := apiserver.Kinds(w.server.Config, apiserver.NamespacedObjects)
	must(w.t, err)
	var all []schema.GroupKind
	for _, gvk := range kinds {
		g := guarded.Guard(w.Name, func(g *v1alpha1.SpecGuard) {
			g.Name, g.Spec.Resources[0] = "probe", v1alpha1.GuardedResource{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
		})
		if gvk.Group != v1alpha1.GroupVersion.Group && !slices.Contains(all, gvk.GroupKind()) && w.cluster.Admin.Create(w.Ctx(), g, client.DryRunAll) == nil {
			all = append(all, gvk.GroupKind())
		}
	}
	return all
}
