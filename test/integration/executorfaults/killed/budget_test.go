// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// Writes of a plan that waits for a PodDisruptionBudget: before a step has begun, and after the
// plan has been under way. The place of the step is given back in both ledgers.
const (
	deferred    = "plan Deferred, which waits: Planned, Planned"
	takenBack   = "plan Running: Planned, Planned"
	releasedAll = "the cluster's ledger: 0 granted, 0 ended, 0 records"
	waitsAgain  = "plan Running, which waits: Planned, Planned"
)

// TestAnExecutorKilledWhileItsPlanWaitsForABudget kills one executor at a write, and the next
// one while the plan waits. The third executor carries the plan out, and each target is
// written once.
func TestAnExecutorKilledWhileItsPlanWaitsForABudget(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	type test struct {
		point failpoint.Crash
		// begun is the write after which an executor was killed before the budget was exhausted; empty for none.
		// No status tells of a claim that an executor has died with.
		begun string
	}
	tests := []test{{failpoint.After(deferred), ""}, {failpoint.After(takenBack), failpoint.Intended}}
	if failpoint.Long() {
		tests = append(tests, test{failpoint.Before(deferred), ""}, test{failpoint.Before(takenBack), failpoint.Intended},
			test{failpoint.Before("let go of web"), failpoint.Intended}, test{failpoint.After("let go of web"), failpoint.Intended},
			test{failpoint.Before(releasedAll), failpoint.Intended}, test{failpoint.After(releasedAll), failpoint.Intended},
			test{failpoint.Before(waitsAgain), failpoint.Intended}, test{failpoint.After(waitsAgain), failpoint.Intended},
			test{failpoint.Before("let go of web"), failpoint.Claimed}, test{failpoint.After("let go of web"), failpoint.Claimed},
			test{failpoint.Before(deferred), failpoint.Claimed}, test{failpoint.After(deferred), failpoint.Claimed})
	}
	worlds := shared.MakeEmptyWorlds(t, len(tests))
	budgets := protectedDrift(worlds)
	for i, test := range tests {
		t.Run(strings.TrimSuffix(test.point.String()+", begun until "+test.begun, ", begun until "), func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			if test.begun != "" {
				allow(w, budgets[i], 1)
				begun := failpoint.After(test.begun)
				shared.Start(t, f, begun.Fault()).UntilKilledAt(begun)
			}
			allow(w, budgets[i], 0)
			shared.Start(t, f, test.point.Fault()).UntilKilledAt(test.point)
			second := shared.Start(t, f, "")
			w.UntilPlan(plan, "it waits and holds nothing", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.DeferralReason != "" && p.Status.Steps[0].State == v1alpha1.StepPlanned && len(w.Held(p)) == 0
			})
			w.Must(second.Kill())
			w.CheckUntouched("web")
			allow(w, budgets[i], 1)
			shared.Start(t, f, "")
			w.UntilWell(plan, f)
			for _, name := range []string{"web", "api"} {
				if n := w.CountEffects(name); n != 1 {
					t.Errorf("%d writes of %s were stored", n, name)
				}
			}
		})
	}
}

// protectedDrift makes in each world a budget, and the drift of two Deployments of which a
// rollout removes the pods first.
func protectedDrift(worlds []*failpoint.World) []*policyv1.PodDisruptionBudget {
	names := []string{"web", "api"}
	budgets := make([]*policyv1.PodDisruptionBudget, len(worlds))
	for i, w := range worlds {
		budgets[i] = &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "all"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		}
		w.Must(w.As(remediation.Platform).Create(w.Ctx(), budgets[i]))
		for _, name := range names {
			d := guarded.Deployment(w.Name, name)
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
			w.Must(w.As(guarded.CI).Create(w.Ctx(), d))
		}
	}
	for _, w := range worlds {
		for _, name := range names {
			w.UntilIs(name, "InSync")
			w.SetImage(remediation.Mallory, name, remediation.EvilImage)
		}
	}
	for _, w := range worlds {
		for _, name := range names {
			w.UntilTold(name, v1alpha1.StateDrifted)
		}
	}
	return budgets
}

// allow is what the controller of budgets writes about four ready pods.
func allow(w *failpoint.World, budget *policyv1.PodDisruptionBudget, disruptions int32) {
	budget.Status.ObservedGeneration, budget.Status.ExpectedPods, budget.Status.DisruptionsAllowed = budget.Generation, 4, disruptions
	w.Must(w.As(remediation.Platform).Status().Update(w.Ctx(), budget))
}
