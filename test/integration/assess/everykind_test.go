// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// kindsOfAGuard is how many kinds a guard may name.
const kindsOfAGuard = 32

// clusterGuardOver selects kinds in the namespace of the world.
func (w *world) clusterGuardOver(name string, kinds []v1alpha1.GuardedResource) *v1alpha1.ClusterSpecGuard {
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + w.namespace}}
	g.Spec.Resources = kinds
	g.Spec.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}
	g.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}}
	return g
}

// guardable are the kinds that a guard may name. The API server refuses each other kind
// by its field.
func (w *world) guardable(kinds []schema.GroupVersionKind) []v1alpha1.GuardedResource {
	w.t.Helper()
	var out []v1alpha1.GuardedResource
	for _, gvk := range kinds {
		r := v1alpha1.GuardedResource{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
		err := admin.Create(w.Ctx(), w.clusterGuardOver("dry", []v1alpha1.GuardedResource{r}), client.DryRunAll)
		switch {
		case err == nil:
			out = append(out, r)
		case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resources[0]."):
			w.t.Errorf("%s %s is refused without its field: %v", r.APIVersion, r.Kind, err)
		}
	}
	return out
}

// TestClusterSpecGuardsOverEveryKindGuardWhatCanBeGuarded: each kind that a guard cannot
// guard is told with its reason, and no other guard waits.
func TestClusterSpecGuardsOverEveryKindGuardWhatCanBeGuarded(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	w.InstallKind("cluster.example.org", "Planet", "planets", apiextensions.ClusterScoped)
	w.InstallKind("metrics.example.org", "Reading", "readings", apiextensions.NamespaceScoped)
	start(t)
	served, err := apiserver.Kinds(config, apiserver.AnyKind)
	w.Must(err)
	kinds := w.guardable(served)
	if len(kinds) < 20 {
		t.Fatalf("only %d kinds may be named, so this test would prove nothing: %v", len(kinds), kinds)
	}
	var guards []*v1alpha1.ClusterSpecGuard
	for some := range slices.Chunk(kinds, kindsOfAGuard) {
		g := w.clusterGuardOver(fmt.Sprintf("every-%d", len(guards)), some)
		w.Must(admin.Create(w.Ctx(), g))
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), g); err != nil {
				t.Errorf("removing the guard: %v", err)
			}
		})
		guards = append(guards, g)
	}
	other.UnderGuard()
	other.Deploy(ci, "web")
	other.UntilIs("web", "InSync")
	w.Deploy(ci, "web")
	w.Until("web", "the kinds that can be guarded are guarded", func(b *v1alpha1.Baseline) error {
		if b.Status.State == "" {
			return fmt.Errorf("it has no state")
		}
		return nil
	})
	readable := []string{"Deployment", "ReplicaSet", "ControllerRevision", "Job", "Pod", "ConfigMap", "RoleBinding", "HorizontalPodAutoscaler"}
	told := 0
	for _, g := range guards {
		w.Eventually("each kind that cannot be read is told", func() error {
			if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil {
				return fmt.Errorf("it has no condition Ready")
			}
			for i, r := range g.Spec.Resources {
				if place := fmt.Sprintf("spec.resources[%d]", i); !slices.Contains(readable, r.Kind) && !strings.Contains(ready.Message, place) {
					return fmt.Errorf("%s, %s %s, is not told: %s %s", place, r.APIVersion, r.Kind, ready.Reason, ready.Message)
				}
			}
			return nil
		})
		for _, r := range g.Spec.Resources {
			if !slices.Contains(readable, r.Kind) {
				told++
			}
		}
	}
	t.Logf("%d kinds may be named, %d of them are told", len(kinds), told)
	other.SetImage(alice, "web", "registry.example/evil:1")
	other.UntilIs("web", "Drifted: Changed "+imagePath+" by alice (Untrusted, WriterStamp)")
}
