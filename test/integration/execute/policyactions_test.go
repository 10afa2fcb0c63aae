// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// deployed deploys, and waits until it is known to be as it should.
func (w *world) deployed(name string) {
	w.t.Helper()
	w.Deploy(ci, name)
	w.UntilIs(name, "InSync")
}

// worked waits until an object was seen ready, and is remembered so.
func (w *world) worked(name string) {
	w.t.Helper()
	w.Until(name, "it was seen ready", func(b *v1alpha1.Baseline) error {
		if b.Status.LastReady == nil {
			return fmt.Errorf("it was never ready")
		}
		return nil
	})
}

// succeeded waits until the only plan has ended well.
func (w *world) succeeded() *v1alpha1.RemediationPlan {
	w.t.Helper()
	plan := w.Ended(w.onlyPlan())
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		w.t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	return plan
}

// untilWaits waits until a policy says that this holds it back.
func (w *world) untilWaits(policy *v1alpha1.RemediationPolicy, why string) {
	w.t.Helper()
	w.untilPolicy(policy, "it waits for "+why, func(s *v1alpha1.RemediationPolicyStatus) bool { return strings.Contains(s.WaitingFor, why) })
}

// said is a drift, what a policy says about it, and what is to come of it.
type said struct {
	drift  func(*world)
	policy func(*v1alpha1.RemediationPolicySpec)
	then   func(*world, *v1alpha1.RemediationPolicy)
}

func rollbackSaid() said {
	return said{
		drift: func(w *world) {
			w.deployed("web")
			w.worked("web")
			w.SetImage(ci, "web", "broken:1") // authorized, and never ready
			w.Until("web", "the broken state is authorized", func(b *v1alpha1.Baseline) error {
				if guarded.Authorized(b) != 2 {
					return fmt.Errorf("authorized is %d", guarded.Authorized(b))
				}
				return nil
			})
			w.SetEnv(mallory, "web", "MORE", "of it")
		},
		policy: action(v1alpha1.ActionRollback),
		then: func(w *world, _ *v1alpha1.RemediationPolicy) {
			w.succeeded()
			if got := imageOf(w.Live("web")); got != guarded.Image {
				w.t.Errorf("it runs %s", got)
			}
		},
	}
}

func scaleSaid() said {
	return said{
		drift: func(w *world) {
			w.deployed("web")
			w.Patch(mallory, "web", `{"spec":{"replicas":9,"template":{"spec":{"containers":[{"name":"app","image":"registry.example/evil:1"}]}}}}`)
		},
		policy: action(v1alpha1.ActionScale),
		then: func(w *world, _ *v1alpha1.RemediationPolicy) {
			w.succeeded()
			if live := w.Live("web"); *live.Spec.Replicas != 2 || imageOf(live) == guarded.Image {
				w.t.Errorf("there are %d replicas of %s", *live.Spec.Replicas, imageOf(live))
			}
		},
	}
}

func restartSaid() said {
	return said{
		drift:  func(w *world) { w.Drifted("web") },
		policy: action(v1alpha1.ActionRestart),
		then: func(w *world, policy *v1alpha1.RemediationPolicy) {
			plan := w.succeeded()
			live := w.Live("web")
			if got := live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; got != protocol.Token(plan, 0) || imageOf(live) == guarded.Image {
				w.t.Errorf("the mark is %q, and it runs %s", got, imageOf(live))
			}
			w.untilWaits(policy, "1 AlreadyDone")
			w.onlyPlan()
		},
	}
}

func manualSaid() said {
	return said{
		drift:  func(w *world) { w.Drifted("web") },
		policy: func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerManual },
		then: func(w *world, _ *v1alpha1.RemediationPolicy) {
			plan := w.onlyPlan()
			w.UntilPlan(plan, "it waits for a person", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.Phase == v1alpha1.PlanDeferred && p.Status.DeferralReason == "it waits for a person to execute it"
			})
			if imageOf(w.Live("web")) == guarded.Image {
				w.t.Error("it did not wait")
			}
			w.Control(plan, v1alpha1.PlanExecute)
			w.succeeded()
			w.UntilIs("web", "InSync")
		},
	}
}

func escalationSaid() said {
	return said{
		drift: func(w *world) {
			w.deployed("web")
			w.Patch(mallory, "web", `{"spec":{"replicas":3}}`)
			w.Until("web", "the drift is told", drifts)
		},
		policy: func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerSeverityEscalation },
		then: func(w *world, policy *v1alpha1.RemediationPolicy) {
			w.untilWaits(policy, "1 NotEscalated")
			if plans := w.plans(); len(plans) != 0 {
				w.t.Errorf("it made %d plans before it was worse", len(plans))
			}
			w.SetImage(mallory, "web", "registry.example/evil:1")
			w.succeeded()
			w.UntilIs("web", "InSync")
		},
	}
}

// Nobody makes a plan here but the policy: the drift is found, planned and acted upon
// as it says, and the records of that are whole.
func TestWhatAPolicySaysIsDone(t *testing.T) {
	startAssessor(t)
	records := newEvidence(t)
	startExecutor(t, records)
	remediation.Rollouts(t, config)
	for name, tc := range map[string]said{
		"Rollback leads to what was ready, and not to what was authorized last": rollbackSaid(),
		"Scale touches the replicas and leaves the rest of the drift":           scaleSaid(),
		"Restart happens once, and leaves the drift":                            restartSaid(),
		"Manual makes a plan that waits for a person":                           manualSaid(),
		"SeverityEscalation waits until it is worse than it was":                escalationSaid(),
	} {
		t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			t.Parallel() // each has an Environment of its own, and mostly waits
			w := newWorld(t)
			w.UnderGuard()
			tc.drift(w)
			tc.then(w, w.policy(busyWriters, tc.policy))
			var plans []*v1alpha1.RemediationPlan
			for _, p := range w.plans() {
				plans = append(plans, &p)
			}
			w.proven(records, plans...)
		})
	}
}
