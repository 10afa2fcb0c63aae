// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/controller/assess"
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
	registered := func(s *assess.Setup) {
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
	b := w.Until("web", "what was authorised is not converted", func(b *v1alpha1.Baseline) error {
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
	w.Until("web", "bob's acceptance is authorised", accepted(bob, 2))
	w.Must(w.As(alice).Patch(w.Ctx(), hpa, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"behavior":{"scaleDown":{"selectPolicy":"Disabled"}}}}`))))
	w.Until("web", "what only v2 shows is drift", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}
