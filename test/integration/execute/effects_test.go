// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

const autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// effectCase is a repair, and what becomes of it.
type effectCase struct {
	// repair leads to a plan that has ended.
	repair func(*world) *v1alpha1.RemediationPlan
	// after happens while the assessment stabilizes; nil for nothing.
	after func(*world)
	want  end
	says  string
}

// reconciled has a drifted Deployment put back.
func reconciled(w *world) *v1alpha1.RemediationPlan { return repaired(v1alpha1.ActionReconcile)(w) }

// repaired has an action taken on a drifted Deployment, which leaves what it desires.
func repaired(action v1alpha1.RemediationAction, changes ...any) func(*world) *v1alpha1.RemediationPlan {
	return func(w *world) *v1alpha1.RemediationPlan {
		w.Drifted("web")
		return w.measuredPlan(action, changes...)
	}
}

// measuredPlan carries out a plan whose effect is measured for as short as a policy may.
func (w *world) measuredPlan(action v1alpha1.RemediationAction, changes ...any) *v1alpha1.RemediationPlan {
	w.t.Helper()
	policy := w.policy(selectsNothing, measuredShortly, func(s *v1alpha1.RemediationPolicySpec) { s.Action = action })
	return w.Ended(w.plan(policy, append([]any{"web"}, changes...)...))
}

// scaledBack puts the replicas of a Deployment back.
func scaledBack(w *world) *v1alpha1.RemediationPlan {
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch(mallory, "web", `{"spec":{"replicas":9}}`)
	w.Until("web", "the drift is told", drifts)
	return w.measuredPlan(v1alpha1.ActionScale)
}

// holdsBackAnother waits until a second policy says that its target is being measured, which no cooldown does.
func (w *world) holdsBackAnother() {
	w.t.Helper()
	second := w.policyBy(platform, w.Name+"-second", action(v1alpha1.ActionRestart))
	w.untilPolicy(second, "the target is being measured", func(s *v1alpha1.RemediationPolicyStatus) bool {
		return strings.Contains(s.WaitingFor, "1 BeingMeasured")
	})
}

// rolledBackUnderMasks rolls a scaled Deployment back to a state that is not the authorized one.
func rolledBackUnderMasks(w *world) *v1alpha1.RemediationPlan {
	w.Deploy(ci, "web")
	ready := w.Until("web", "it was seen ready", func(b *v1alpha1.Baseline) error {
		if b.Status.LastReady == nil {
			return fmt.Errorf("it was never ready")
		}
		return nil
	}).Status.LastReady
	w.SetImage(ci, "web", "broken:1")
	w.Until("web", "the broken state is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("authorized is %d", guarded.Authorized(b))
		}
		return nil
	})
	w.scaleMasked(7)
	w.SetEnv(mallory, "web", "MORE", "of it")
	w.Until("web", "the drift is told", drifts)
	return w.measuredPlan(v1alpha1.ActionRollback, func(p *v1alpha1.PlanTarget) {
		p.Revision, p.RevisionHash, p.DesiredHash = ready.Revision, ready.Hash, ready.Hash
	})
}

// scaleMasked has the autoscaler scale, and waits until the change has its mask.
func (w *world) scaleMasked(replicas int) {
	w.t.Helper()
	w.Patch(autoscaler, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	w.Until("web", "the autoscaler's change is masked", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Masks) == 0 {
			return fmt.Errorf("there is no mask")
		}
		return nil
	})
}

func readyPods(n int) func(*world) {
	return func(w *world) { w.Pods("web", make([]remediation.PodState, n)...) }
}

func effective() end {
	return end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged}
}

func invalidated() end {
	return end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, 0, v1alpha1.IntegrityDrifted}
}

func effectCases() map[string]effectCase {
	const inEffect = "the write is in effect"
	same := func(p *v1alpha1.PlanTarget) { p.DesiredHash = p.DriftedHash }
	return map[string]effectCase{
		"a repair after which all pods are ready is effective": {reconciled, readyPods(2), effective(), inEffect},
		"a repair after which pods crash is ineffective": {
			reconciled, func(w *world) { w.Pods("web", remediation.PodReady, remediation.PodCrashLooping) },
			end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 0, v1alpha1.IntegrityUnchanged}, "crash loop",
		},
		"a fix that a bot undoes is invalidated": {
			reconciled, func(w *world) { w.SetImage(mallory, "web", remediation.EvilImage) }, invalidated(), "another writer has changed the target",
		},
		"a fix whose target is deleted is invalidated": {reconciled, func(w *world) { w.Delete(mallory, "web") }, invalidated(), "the target is gone"},
		"an autoscaler that scales is no drift":        {reconciled, func(w *world) { w.scaleMasked(3); readyPods(3)(w) }, effective(), inEffect},
		"a restart is in effect, and holds back the next one": {
			repaired(v1alpha1.ActionRestart, same), func(w *world) { readyPods(2)(w); w.holdsBackAnother() }, effective(), inEffect,
		},
		"replicas that were put back are in effect": {scaledBack, readyPods(2), effective(), inEffect},
		"a rollback under masks is in effect":       {rolledBackUnderMasks, func(w *world) { w.scaleMasked(8); readyPods(8)(w) }, effective(), inEffect},
		"a step that wrote nothing is not measured": {
			repaired(v1alpha1.ActionReconcile, func(p *v1alpha1.PlanTarget) { p.DriftedHash = p.DesiredHash }), nil,
			end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedNoExecution, v1alpha1.VerdictInconclusive, -1, v1alpha1.IntegrityUnknown}, "did not write",
		},
		"a fix in a namespace that is deleted ends": {
			reconciled, func(w *world) {
				readyPods(2)(w)
				w.Must(admin.Delete(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}))
			}, effective(), inEffect,
		},
	}
}

// One assessor and one executor measure all cases beside each other: a policy measures for 10 seconds at least.
func TestTheEffectOfRepairs(t *testing.T) {
	startAssessor(t, assessesEffects)
	startExecutor(t, newEvidence(t))
	cases, plans, worlds := effectCases(), map[string]*v1alpha1.RemediationPlan{}, map[string]*world{}
	for name := range cases {
		worlds[name] = newWorld(t)
	}
	for name, tc := range cases {
		w := worlds[name]
		w.Rollouts()
		w.UnderGuard(guarded.ExpectAutoscaler)
		plans[name] = tc.repair(w)
		if tc.after != nil {
			w.assessed(plans[name], 0, name+": the assessment stabilizes", stabilizes)
			tc.after(w)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := worlds[name].within(t).assessed(plans[name], 0, "the assessment has ended", hasEnded)
			if diff := cmp.Diff(tc.want, endOf(a)); diff != "" || !strings.Contains(a.Status.Message, tc.says) {
				t.Errorf("the end differs (-want +got):\n%s%s", diff, a.Status.Message)
			}
		})
	}
}
