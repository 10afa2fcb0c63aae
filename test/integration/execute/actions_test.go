// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

func action(a v1alpha1.RemediationAction) func(*v1alpha1.RemediationPolicySpec) {
	return func(s *v1alpha1.RemediationPolicySpec) { s.Action = a }
}

func TestSevenReplicasOfAnAutoscalerStaySeven(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard(guarded.ExpectAutoscaler)
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch("system:serviceaccount:kube-system:horizontal-pod-autoscaler", "web", `{"spec":{"replicas":7}}`)
	w.Until("web", "the autoscaler's change is masked", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Masks) == 0 {
			return fmt.Errorf("there is no mask")
		}
		return nil
	})
	w.SetImage(mallory, "web", "registry.example/evil:1")
	w.UntilOn(poll.Detection, "web", "the drift is told", drifts)
	startExecutor(t, newEvidence(t))
	plan := w.Ended(w.plan(w.policy(), "web"))
	live := w.Live("web")
	if plan.Status.Phase != v1alpha1.PlanSucceeded || *live.Spec.Replicas != 7 || imageOf(live) != guarded.Image {
		t.Errorf("%s; %d replicas of %s", remediation.Describe(plan), *live.Spec.Replicas, imageOf(live))
	}
}

func drifts(b *v1alpha1.Baseline) error {
	if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil {
		return fmt.Errorf("it is %s", b.Status.State)
	}
	return nil
}

func TestScaleTouchesTheReplicasAlone(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch(mallory, "web", `{"spec":{"replicas":9}}`)
	w.Until("web", "the drift is told", drifts)
	startExecutor(t, newEvidence(t))
	plan := w.Ended(w.plan(w.policy(action(v1alpha1.ActionScale)), "web"))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	w.UntilIs("web", "InSync")
}

func TestARestartHappensOnce(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	records := newEvidence(t)
	startExecutor(t, records)
	policy := w.policy(action(v1alpha1.ActionRestart))
	plan := w.plan(policy, "web", func(p *v1alpha1.PlanTarget) { p.DesiredHash = p.DriftedHash })
	plan = w.Ended(plan)
	mark := w.Live("web").Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
	if plan.Status.Phase != v1alpha1.PlanSucceeded || mark != protocol.Token(plan, 0) {
		t.Errorf("%s; the mark is %q", remediation.Describe(plan), mark)
	}
	var events []string
	for i := range plan.Status.History {
		events = append(events, plan.Status.History[i].Event)
	}
	if diff := cmp.Diff([]string{"plan.started", "target.started", "target.completed", "plan.completed"}, events); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	w.proven(records, plan)
}

func TestARollbackLeadsToTheLastStateThatWasReady(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Deploy(ci, "web")
	ready := w.Until("web", "it was seen ready", func(b *v1alpha1.Baseline) error {
		if b.Status.LastReady == nil {
			return fmt.Errorf("it was never ready")
		}
		return nil
	}).Status.LastReady
	w.SetImage(ci, "web", "broken:1") // authorized, and never ready
	w.Until("web", "the broken state is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("authorized is %d", guarded.Authorized(b))
		}
		return nil
	})
	w.SetEnv(mallory, "web", "MORE", "of it")
	w.Until("web", "the drift is told", drifts)
	startExecutor(t, newEvidence(t))
	plan := w.Ended(w.plan(w.policy(action(v1alpha1.ActionRollback)), "web", func(p *v1alpha1.PlanTarget) {
		p.Revision, p.RevisionHash, p.DesiredHash = ready.Revision, ready.Hash, ready.Hash
	}))
	if got := imageOf(w.Live("web")); plan.Status.Phase != v1alpha1.PlanSucceeded || got != guarded.Image {
		t.Errorf("%s; it runs %s", remediation.Describe(plan), got)
	}
}

func TestWhatIsGoneIsMadeAgain(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.Patch(ci, "web", `{"metadata":{"labels":{"team":"shop"},"annotations":{"meta.helm.sh/release-name":"shop","note":"none of ours"}}}`)
	w.Until("web", "what others find it by is known", func(b *v1alpha1.Baseline) error {
		if m := b.Status.Observed.Metadata; m == nil || m.Labels["team"] != "shop" {
			return fmt.Errorf("known is %v", m)
		}
		return nil
	})
	w.UntilIs("web", "InSync")
	w.Delete(mallory, "web")
	w.Until("web", "it is missed", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateMissing {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	records := newEvidence(t)
	startExecutor(t, records)
	plan := w.Ended(w.plan(w.policy(), "web", func(p *v1alpha1.PlanTarget) { p.UID, p.DriftType = "", v1alpha1.DriftMissing }))
	live := w.Live("web")
	if plan.Status.Phase != v1alpha1.PlanSucceeded || imageOf(live) != guarded.Image {
		t.Errorf("%s; %v", remediation.Describe(plan), live.Spec)
	}
	if live.Labels["team"] != "shop" || live.Annotations["meta.helm.sh/release-name"] != "shop" || live.Annotations["note"] != "" {
		t.Errorf("it has the labels %v and the annotations %v", live.Labels, live.Annotations)
	}
	w.proven(records, plan)
}

// What is made again belongs to its owners as before, or the garbage collector loses it.
func TestWhatIsMadeAgainBelongsToItsOwnersThatStillLive(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	parent, gone := w.Deploy(ci, "parent"), w.Deploy(ci, "gone")
	secret := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "secret"}}
	w.Must(admin.Create(t.Context(), secret))
	d := guarded.Deployment(w.Name, "web")
	d.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: parent.UID, Controller: new(true), BlockOwnerDeletion: new(true)},
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "gone", UID: gone.UID},
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "another-life"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "secret", UID: secret.UID},
	}
	w.Must(w.As(ci).Create(t.Context(), d))
	w.UntilIs("web", "InSync")
	w.Delete(ci, "gone")
	w.Delete(mallory, "web")
	w.Until("web", "it is missed", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateMissing {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	records := newEvidence(t)
	startExecutor(t, records)
	plan := w.Ended(w.plan(w.policy(), "web", func(p *v1alpha1.PlanTarget) { p.UID, p.DriftType = "", v1alpha1.DriftMissing }))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: parent.UID, Controller: new(true)}}
	if diff := cmp.Diff(want, w.Live("web").OwnerReferences); diff != "" {
		t.Errorf("its owners (-want +got):\n%s", diff)
	}
	const told = "as it should be, and healthy; made again without its owners Deployment/gone (it is gone), Deployment/parent (another object has its name), " +
		"ConfigMap/secret (the executor may not get it), without finalizers, and without annotations other than those of Helm"
	if got := plan.Status.Steps[0].Message; got != told {
		t.Errorf("the step says %q", got)
	}
	w.proven(records, plan)
}

func TestWhatDoesNotBecomeHealthyStopsThePlan(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // and nothing rolls out
	w.Drifted("web", "api")
	startExecutor(t, newEvidence(t))
	plan := w.Ended(w.plan(w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Health.Timeout = &metav1.Duration{Duration: 5e9}
	}), "web", "api"))
	first, second := plan.Status.Steps[0], plan.Status.Steps[1]
	if plan.Status.Phase != v1alpha1.PlanFailed || first.Reason != v1alpha1.ReasonUnhealthy || second.Reason != v1alpha1.ReasonStopped {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	if got := imageOf(w.Live("api")); got == guarded.Image {
		t.Errorf("the second target was written after the first had failed")
	}
}

func TestAStepIsSkippedWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*world)
		target func(*v1alpha1.PlanTarget)
		want   v1alpha1.StepReason
	}{
		"the target changed since": {
			before: func(w *world) { w.SetEnv(mallory, "web", "ANOTHER", "drift") },
			want:   v1alpha1.ReasonTargetMoved,
		},
		"somebody put it back": {
			before: func(w *world) { w.SetImage(mallory, "web", guarded.Image) },
			want:   v1alpha1.ReasonAlreadyDesired,
		},
		"it was made anew": {
			before: func(w *world) {
				w.Delete(ci, "web")
				w.Deploy(ci, "web")
			},
			want: v1alpha1.ReasonTargetReplaced,
		},
		"it is gone": {
			before: func(w *world) { w.Delete(mallory, "web") },
			want:   v1alpha1.ReasonTargetReplaced,
		},
		"another state was authorized since": {
			before: func(w *world) {
				w.SetImage(ci, "web", "registry.example/shop:2")
				w.Until("web", "it is authorized", func(b *v1alpha1.Baseline) error {
					if guarded.Authorized(b) < 2 {
						return fmt.Errorf("it is %d", guarded.Authorized(b))
					}
					return nil
				})
			},
			want: v1alpha1.ReasonTargetMoved,
		},
		"the plan names a hash that no revision has": {
			target: func(p *v1alpha1.PlanTarget) {
				p.DesiredHash = "pl1:sha256:" + strings.Repeat("0", 64)
				p.RevisionHash = p.DesiredHash
			},
			want: v1alpha1.ReasonTargetMoved,
		},
		"the plan names a revision that is not there": {
			target: func(p *v1alpha1.PlanTarget) { p.Revision = "no-such-revision" },
			want:   v1alpha1.ReasonRevisionDamaged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			startAssessor(t)
			w := newWorld(t)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			policy := w.policy()
			if tc.target == nil {
				tc.target = func(*v1alpha1.PlanTarget) {}
			}
			plan := w.plan(policy, "web", tc.target)
			if tc.before != nil {
				tc.before(w)
			}
			before := w.generation("web")
			records := newEvidence(t)
			startExecutor(t, records)
			plan = w.Ended(plan)
			if got := plan.Status.Steps[0].Reason; got != tc.want {
				t.Errorf("the plan is %s, want %s", remediation.Describe(plan), tc.want)
			}
			if after := w.generation("web"); after != before {
				t.Errorf("it was written: generation %d became %d", before, after)
			}
			w.settled(0)
			w.proven(records, plan)
		})
	}
}

// generation of a Deployment, 0 when it is not there.
func (w *world) generation(name string) int64 {
	w.t.Helper()
	d := w.Named(name)
	w.Must(client.IgnoreNotFound(admin.Get(w.t.Context(), client.ObjectKeyFromObject(d), d)))
	return d.Generation
}

func TestTheRequesterMustStillBeAllowed(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	// The rights of platform come through a group, which the policy does not name.
	plan := w.plan(w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.RequestedByGroups = nil }), "web")
	startExecutor(t, newEvidence(t))
	plan = w.Ended(plan)
	if got := plan.Status.Steps[0].Reason; got != v1alpha1.ReasonNotAllowed {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
}

// Who makes plans must not be able to lend them a right that nobody gave.
func TestAPlanThatActsInAnotherNameThanItsPolicyIsEnded(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	plan := w.plan(w.policy(), "web", func(p *v1alpha1.PlannedRemediation) { p.Requester = "root" })
	startExecutor(t, newEvidence(t))
	plan = w.Ended(plan)
	if got := imageOf(w.Live("web")); plan.Status.Phase != v1alpha1.PlanCanceled || got == guarded.Image {
		t.Errorf("the plan is %s, and web runs %s", remediation.Describe(plan), got)
	}
}

func TestWithoutABindingNothingIsWritten(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.Must(admin.Delete(t.Context(), w.Binding()))
	plan := w.plan(w.policy(), "web")
	startExecutor(t, newEvidence(t))
	plan = w.UntilPlan(plan, "it says that it may not", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) > 0 && (p.Status.Steps[0].Reason == v1alpha1.ReasonNotAllowed)
	})
	if got := imageOf(w.Live("web")); got == guarded.Image {
		t.Errorf("it was written all the same; %s", remediation.Describe(plan))
	}
}

func TestATargetBelongsToOnePlan(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // nothing rolls out: the first plan keeps its claim
	w.Drifted("web")
	w.Deploy(ci, "api")
	w.UntilIs("api", "InSync")
	policy := w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxConcurrent = 5 })
	first := w.plan(policy, "web")
	startExecutor(t, newEvidence(t))
	w.UntilPlan(first, "the first has written", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) > 0 && p.Status.Steps[0].State == v1alpha1.StepApplied
	})
	w.SetEnv(mallory, "api", "OTHER", "drift")
	w.Until("api", "the drift is told", drifts)
	second := w.plan(policy, "api", func(p *v1alpha1.PlanTarget) {
		p.Name, p.BaselineName = "web", "deployments.apps.web"
		p.DriftedHash = "pl1:sha256:" + strings.Repeat("1", 64)
	})
	second = w.Ended(second)
	if got := second.Status.Steps[0].Reason; got != v1alpha1.ReasonClaimed {
		t.Errorf("the second plan is %s", remediation.Describe(second))
	}
}

func TestTheLimitOfAnHourDefersARepair(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web", "api")
	startExecutor(t, newEvidence(t))
	plan := w.plan(w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerHour = 1 }), "web", "api")
	plan = w.UntilPlan(plan, "the second step waits for the limit", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Counts.Succeeded == 1 && strings.Contains(p.Status.DeferralReason, "MaxPerHour") && p.Status.ResumeTime != nil
	})
	w.Control(plan, v1alpha1.PlanCancel)
	plan = w.Ended(plan)
	if plan.Status.Phase != v1alpha1.PlanCanceled || plan.Status.EndedBy != platform {
		t.Errorf("the plan is %s by %s", remediation.Describe(plan), plan.Status.EndedBy)
	}
	w.settled(1)
}
