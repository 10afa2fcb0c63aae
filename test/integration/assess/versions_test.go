// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func autoscalers(version string) func(*v1alpha1.SpecGuard) {
	return func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "autoscaling/" + version, Kind: "HorizontalPodAutoscaler"}}
		g.Spec.ExpectedWriters = nil
	}
}

// M1 of the guard's review: autoscaling/v1 shows metrics and behavior in annotations,
// and the tenant's guard of v1 made the Baseline first.
func TestAKindIsJudgedInTheRegisteredVersion(t *testing.T) {
	w := newWorld(t)
	w.Resource = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	registered := func(s *assessor.Setup) {
		s.Registered = []schema.GroupVersionResource{{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}}
	}
	// As it was before the version was registered: the Baseline is one of v1.
	p := start(t)
	tenant := w.UnderGuard(autoscalers("v1"))
	hpa := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
		"metadata": map[string]any{"namespace": w.namespace, "name": "web"},
		"spec": map[string]any{
			"minReplicas": int64(2), "maxReplicas": int64(9),
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		},
	}}
	w.Must(w.As(ci).Create(w.Ctx(), hpa))
	if b := w.UntilIs("web", "InSync"); b.Spec.Target.APIVersion != "autoscaling/v1" {
		t.Fatalf("the target is %+v", b.Spec.Target)
	}
	p.Halt(t)

	start(t, registered)
	b := w.Until("web", "what was authorized is not converted", func(b *v1alpha1.Baseline) error {
		if b.Spec.Target.APIVersion != "autoscaling/v2" || b.Status.State != v1alpha1.StateUnknown || b.Status.Observed.Hash == "" {
			return fmt.Errorf("the target is %+v", b.Spec.Target)
		}
		if !strings.Contains(fmt.Sprint(b.Status.Conditions), v1alpha1.ReasonBodyLost) {
			return fmt.Errorf("the conditions are %+v", b.Status.Conditions)
		}
		return nil
	})
	w.guardReads(tenant, func() []metav1.Condition { return tenant.Status.Conditions },
		"Ready=False OtherVersion: spec.resources[0].apiVersion: HorizontalPodAutoscaler is judged as autoscaling/v2")
	w.accept(bob, b, b.Status.Observed.Hash)
	w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	w.Must(w.As(alice).Patch(w.Ctx(), hpa, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"behavior":{"scaleDown":{"selectPolicy":"Disabled"}}}}`))))
	w.Until("web", "what only v2 shows is drift", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

// withBeta serves a custom kind in v1beta1 as well.
func withBeta(crd *apiextensions.CustomResourceDefinition) {
	beta := *crd.Spec.Versions[0].DeepCopy()
	beta.Name, beta.Storage = "v1beta1", false
	crd.Spec.Versions = append(crd.Spec.Versions, beta)
}

// TestAVersionThatIsNoLongerServedHidesNoDrift has a guard of v1beta1, which the kind then
// no longer serves, and a change through v1 before anyone corrects the guard.
func TestAVersionThatIsNoLongerServedHidesNoDrift(t *testing.T) {
	w := newWorld(t)
	start(t)
	var crd *apiextensions.CustomResourceDefinition
	w.InstallKind("example.org", "Widget", "widgets", apiextensions.NamespaceScoped, withBeta,
		func(c *apiextensions.CustomResourceDefinition) { crd = c })
	w.Resource = schema.GroupResource{Group: "example.org", Resource: "widgets"}
	g := w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.org/v1beta1", Kind: "Widget"}}
	})
	widget := w.object(`{"apiVersion":"example.org/v1","kind":"Widget","spec":{"size":1}}`, "web")
	w.Eventually("the API server takes a widget", func() error { return w.As(ci).Create(w.Ctx(), widget) })
	w.UntilIs("web", "InSync")

	before := crd.DeepCopy()
	crd.Spec.Versions[1].Served = false
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	w.Must(c.Patch(w.Ctx(), crd, client.MergeFrom(before)))
	// The API server keeps the watches of the version for about a minute, and then the
	// guard reads nothing: in neither case is the object in sync.
	w.merge(mallory, widget, `{"spec":{"size":2}}`)
	w.Until("web", "the object is not called in sync", func(b *v1alpha1.Baseline) error {
		if b.Status.State == v1alpha1.StateInSync {
			return fmt.Errorf("it is: %+v", b.Status.Conditions)
		}
		return nil
	})

	w.Must(admin.Patch(w.Ctx(), g.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"resources":[{"apiVersion":"example.org/v1","kind":"Widget"}]}}`))))
	b := w.Until("web", "what was authorized in v1beta1 proves no object of v1", func(b *v1alpha1.Baseline) error {
		if b.Spec.Target.APIVersion != "example.org/v1" || b.Status.State != v1alpha1.StateUnknown || b.Status.Observed.Hash == "" {
			return fmt.Errorf("the target is %+v, the state is %s", b.Spec.Target, b.Status.State)
		}
		return nil
	})
	w.accept(bob, b, b.Status.Observed.Hash)
	w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	w.merge(mallory, widget, `{"spec":{"size":3}}`)
	w.UntilIs("web", "Drifted: Changed /spec/size by mallory (Untrusted, WriterStamp)")
}
