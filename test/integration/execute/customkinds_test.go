// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// basketWorld has guarded objects of a custom kind.
type basketWorld struct{ *world }

// newBaskets serves the kind Basket, whose status has these fields; without fields it has
// no status.
func newBaskets(t *testing.T, fields ...string) basketWorld {
	t.Helper()
	startAssessor(t)
	w := basketWorld{newWorld(t)}
	w.Resource = schema.GroupResource{Group: "shop.example", Resource: "baskets"}
	w.InstallKind("shop.example", "Basket", "baskets", apiextensions.NamespaceScoped, func(crd *apiextensions.CustomResourceDefinition) {
		text := apiextensions.JSONSchemaProps{Type: "string"}
		object := func(properties map[string]apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
			return apiextensions.JSONSchemaProps{Type: "object", Properties: properties}
		}
		root := object(map[string]apiextensions.JSONSchemaProps{"spec": object(map[string]apiextensions.JSONSchemaProps{"size": text})})
		version := &crd.Spec.Versions[0]
		version.Schema.OpenAPIV3Schema = &root
		if len(fields) == 0 {
			return
		}
		version.Subresources = &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}}
		status := map[string]apiextensions.JSONSchemaProps{}
		for _, field := range fields {
			status[field] = text
		}
		if _, reports := status["conditions"]; reports {
			condition := object(map[string]apiextensions.JSONSchemaProps{"type": text, "status": text})
			status["conditions"] = apiextensions.JSONSchemaProps{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &condition}}
		}
		root.Properties["status"] = object(status)
	})
	w.Eventually("the API server takes baskets", func() error { return w.As(ci).Create(t.Context(), w.named("probe"), client.DryRunAll) })
	w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "shop.example/v1", Kind: "Basket"}}
	})
	return w
}

func (w basketWorld) named(name string) *unstructured.Unstructured {
	basket := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "large"}}}
	basket.SetAPIVersion("shop.example/v1")
	basket.SetKind("Basket")
	basket.SetNamespace(w.Name)
	basket.SetName(name)
	return basket
}

// drifted makes a basket, and has somebody change it.
func (w basketWorld) drifted(name string) {
	w.t.Helper()
	w.Must(w.As(ci).Create(w.Ctx(), w.named(name)))
	w.UntilIs(name, "InSync")
	w.Must(w.As(mallory).Patch(w.Ctx(), w.named(name), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":"small"}}`))))
	w.Until(name, "the drift is told", drifts)
}

// D20 of the review of remediation: a ServiceMonitor was put back correctly, failed as
// unhealthy after ten minutes, and counted for the breaker.
func TestACustomObjectWithoutStatusIsPutBackAndThePlanSucceedsAtOnce(t *testing.T) {
	tests := map[string]struct {
		status  []string
		timeout time.Duration // an hour is longer than the test waits for the end of the plan
		phase   v1alpha1.PlanPhase
		says    string
	}{
		"its kind has no status":                      {nil, time.Hour, v1alpha1.PlanSucceeded, "healthy"},
		"its kind has a status without conditions":    {[]string{"phase"}, time.Hour, v1alpha1.PlanSucceeded, "healthy"},
		"its controller has yet to report conditions": {[]string{"conditions"}, 5 * time.Second, v1alpha1.PlanFailed, "its controller has not reported yet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newBaskets(t, test.status...)
			w.drifted("web")
			startExecutor(t, newEvidence(t))
			plan := w.Ended(w.plan(w.policy(func(s *v1alpha1.RemediationPolicySpec) {
				s.Health.Timeout = &metav1.Duration{Duration: test.timeout}
			}), "web"))
			step := plan.Status.Steps[0]
			if plan.Status.Phase != test.phase || !strings.Contains(step.Message, test.says) {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
		})
	}
}

// rule makes GuardDefaults of the world's Environment that say when a basket is ready.
func (w basketWorld) rule(expression string) *v1alpha1.GuardDefaults {
	w.t.Helper()
	defaults := &v1alpha1.GuardDefaults{ObjectMeta: metav1.ObjectMeta{Name: w.environment}, Spec: v1alpha1.GuardDefaultsSpec{
		EnvironmentName: w.environment,
		Readiness:       []v1alpha1.ReadinessRule{{APIGroup: "shop.example", Kind: "Basket", Expression: expression}},
	}}
	w.Must(admin.Create(w.Ctx(), defaults))
	w.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(w.Ctx()), defaults); err != nil {
			w.t.Errorf("removing the defaults: %v", err)
		}
	})
	return defaults
}

func TestACustomObjectWithARuleOfPeopleWaitsUntilTheRuleHolds(t *testing.T) {
	w := newBaskets(t, "phase")
	w.rule("object.status.phase == 'Bound'")
	w.drifted("web")
	w.drifted("api")
	startExecutor(t, newEvidence(t))
	plan := w.plan(w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) {
		s.Health = v1alpha1.RemediationHealth{Stabilization: &metav1.Duration{}, Timeout: &metav1.Duration{Duration: 8 * time.Second}}
	}), "web", "api")
	// phase has the basket's controller report a phase once a step has written.
	phase := func(step int, name, phase string) {
		w.UntilPlan(plan, "the step has written", func(p *v1alpha1.RemediationPlan) bool {
			return len(p.Status.Steps) > step && p.Status.Steps[step].State == v1alpha1.StepApplied
		})
		patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
		w.Must(admin.Status().Patch(t.Context(), w.named(name), client.RawPatch("application/merge-patch+json", patch)))
	}
	phase(0, "web", "Bound")
	phase(1, "api", "Pending")
	plan = w.Ended(plan)
	web, api := plan.Status.Steps[0], plan.Status.Steps[1]
	if web.State != v1alpha1.StepVerified || api.Reason != v1alpha1.ReasonUnhealthy ||
		!strings.Contains(api.Message, "the rule in GuardDefaults/"+w.environment+" does not hold") {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
}

// A mistake in a rule is told when the rule is written, and lets no object count as ready.
func TestARuleThatFailsCountsAsNotReadyAndIsTold(t *testing.T) {
	for name, test := range map[string]struct{ expression, reason, says string }{
		"it cannot be compiled":  {"self.status.phase == 'Bound'", v1alpha1.ReasonInvalidExpression, "undeclared reference to 'self'"},
		"it cannot be evaluated": {"object.status.phase == 'Bound'", "Active", "no such key: status"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBaskets(t, "phase")
			defaults := w.rule(test.expression)
			w.Eventually("the condition tells it", func() error {
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(defaults), defaults); err != nil {
					return err
				}
				c := meta.FindStatusCondition(defaults.Status.Conditions, v1alpha1.ConditionReady)
				if c == nil || c.Reason != test.reason {
					return fmt.Errorf("Ready is %+v", c)
				}
				return nil
			})
			w.drifted("web")
			startExecutor(t, newEvidence(t))
			plan := w.Ended(w.plan(w.policy(func(s *v1alpha1.RemediationPolicySpec) {
				s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
			}), "web"))
			if step := plan.Status.Steps[0]; step.Reason != v1alpha1.ReasonUnhealthy || !strings.Contains(step.Message, test.says) {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
		})
	}
}
