// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// fakeKinds are what the schemas of kinds say.
type fakeKinds map[string]readiness.Status

func (k fakeKinds) Status(_ context.Context, gvk canon.GVK) readiness.Status { return k[gvk.Kind] }

// Readiness implements GuardView.
func (g *fakeGuards) Readiness(string, *v1alpha1.PlanTarget) *readiness.Rule { return g.rule }

// basket makes the target one of a kind whose controller says nothing of its own accord.
func (w *world) basket() {
	w.Helper()
	of := v1alpha1.BaselineTarget{APIVersion: "shop.example/v1", Kind: "Basket", Name: "web"}
	w.targets.objects["web"]["apiVersion"], w.targets.objects["web"]["kind"] = of.APIVersion, of.Kind
	w.plan.Spec.Plan.Targets[0].BaselineTarget = of
	w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Target = of })
}

// health is what is read of the health of the target.
type health struct {
	Ready protocol.Answer
	Why   string
}

func (w *world) health() health {
	w.Helper()
	r := w.started(v1alpha1.StepApplied)
	r.plan.Spec = w.plan.Spec
	t := r.read(w.Context(), 0)
	return health{t.Ready, t.NotReady}
}

// D20 of the review of remediation: what was put back correctly failed as unhealthy after
// ten minutes, and three such repairs opened the breaker.
func TestACustomObjectThatCannotReportIsReadyForTheExecutor(t *testing.T) {
	tests := map[string]struct {
		status readiness.Status
		want   health
	}{
		"its kind has no conditions":            {readiness.StatusNone, health{protocol.Yes, ""}},
		"its controller is still to report":     {readiness.StatusReported, health{protocol.No, "its controller has not reported yet"}},
		"the schema of its kind cannot be read": {readiness.StatusUnknown, health{protocol.Unknown, "it does not say whether it is ready"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.basket()
			w.kinds["Basket"] = test.status
			if diff := cmp.Diff(test.want, w.health()); diff != "" {
				t.Errorf("its health (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARuleOfPeopleSaysWhenATargetIsReady(t *testing.T) {
	answers := func(holds bool, err error) *readiness.Rule {
		return &readiness.Rule{Source: "GuardDefaults/platform", Holds: func([]byte) (bool, error) { return holds, err }}
	}
	tests := map[string]struct {
		rule *readiness.Rule
		want health
	}{
		"it holds":         {answers(true, nil), health{protocol.Yes, ""}},
		"it does not hold": {answers(false, nil), health{protocol.No, "the rule in GuardDefaults/platform does not hold"}},
		"it fails":         {answers(false, errNetwork), health{protocol.No, "the rule in GuardDefaults/platform fails: connection reset"}},
		"there is none":    {nil, health{protocol.Yes, ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.basket()
			w.kinds["Basket"], w.guards.rule = readiness.StatusNone, test.rule
			if diff := cmp.Diff(test.want, w.health()); diff != "" {
				t.Errorf("its health (-want +got):\n%s", diff)
			}
		})
	}
}
