// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/controller/policy"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
)

func TestDriftBecomesAPlan(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web", "db", "cache", "queue")
	p := w.policy()
	w.untilPolicy("four objects are selected", counts(4, 0, 0))
	w.SetImage(alice, "web", evil)
	w.untilTargets("web")

	b, err := w.Baseline("web")
	w.Must(err)
	plan := w.plans()[0]
	got := plan.Spec.Plan.Targets[0]
	want := v1alpha1.PlanTarget{
		BaselineTarget: b.Spec.Target, BaselineName: b.Name, UID: string(w.Live("web").UID),
		DriftedHash: b.Status.Observed.Hash, DesiredHash: b.Spec.Authorized.Hash,
		Revision: b.Spec.Authorized.Revision, RevisionHash: b.Spec.Authorized.Hash,
		Paths: []string{guarded.ImagePath}, Action: v1alpha1.ActionReconcile, Severity: *b.Status.Severity,
		DriftType: v1alpha1.DriftImage, FirstSeenTime: *b.Status.FirstSeenTime, Actors: []string{alice},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if of := plan.Spec.Plan.Policy; of.UID != string(p.UID) || of.Digest != planner.Digest(&p.Spec) || plan.Namespace != w.Name {
		t.Errorf("the plan is %+v", plan)
	}
	w.untilPolicy("the policy names its plan", func(p *v1alpha1.RemediationPolicy) error {
		if want := w.Name + "/" + plan.Name; p.Status.LastPlanName != want {
			return fmt.Errorf("it names %q, want %q", p.Status.LastPlanName, want)
		}
		return counts(4, 1, 0)(p)
	})
}

// M5 of the guard's review: "the stricter holds" let a tenant keep repairs from the objects
// of the platform.
func TestAGuardOfATenantKeepsNoRepairFromAnObjectOfThePlatform(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.SpecGuard){
		"it is unmanaged": func(g *v1alpha1.SpecGuard) { g.Spec.ManagementPolicy = v1alpha1.Unmanaged },
		"it is suspended": func(g *v1alpha1.SpecGuard) {
			g.Spec.Suspend = &v1alpha1.Suspension{Reason: "mine", EndTime: metav1.NewTime(time.Now().Add(time.Hour))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			start(t)
			w.UnderClusterGuard(w.Name)
			w.Guard(change)
			w.running("web", "db", "cache")
			w.Until("web", "both guards select it", func(b *v1alpha1.Baseline) error {
				if len(b.Status.Guards) != 2 {
					return fmt.Errorf("these do: %v", b.Status.Guards)
				}
				return nil
			})
			w.policy()
			w.SetImage(alice, "web", evil)
			w.untilTargets("web")
		})
	}
}

// What an object was when it last worked is remembered, without anything but its
// status changing.
func TestAnAuthorizedStateThatWorksIsRemembered(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	b := w.UntilIs("web", "InSync")
	if b.Status.LastReady != nil {
		t.Fatalf("it was never ready, and last at %+v", b.Status.LastReady)
	}
	remembers := func(want string) func(*v1alpha1.Baseline) error {
		return func(b *v1alpha1.Baseline) error {
			if r := b.Status.LastReady; r == nil || r.Revision != want || b.Spec.Authorized.Revision == want && r.Hash != b.Spec.Authorized.Hash {
				return fmt.Errorf("the last ready revision is %+v, want %s", r, want)
			}
			return nil
		}
	}
	w.ready("web")
	first := w.Until("web", "the first state is known to work", remembers(b.Spec.Authorized.Revision))
	// The next one never becomes ready.
	w.SetImage(ci, "web", "registry.example/shop:2")
	second := w.Until("web", "the second state is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("revision %d is", guarded.Authorized(b))
		}
		return nil
	})
	w.Until("web", "the first is still the last that worked", remembers(first.Spec.Authorized.Revision))
	// Somebody else's state does not count, however well it works.
	w.SetImage(alice, "web", evil)
	w.Until("web", "it drifts", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	w.ready("web")
	w.SetImage(alice, "web", "registry.example/shop:2")
	w.UntilIs("web", "InSync")
	w.Until("web", "the first is still the last that worked", remembers(first.Spec.Authorized.Revision))
	w.ready("web")
	w.Until("web", "the second is known to work", remembers(second.Spec.Authorized.Revision))
}

func TestAPolicyThatObservesTellsAndMakesNothing(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web", "db", "cache")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.Mode = v1alpha1.PolicyModeObserveOnly })
	w.SetImage(alice, "web", evil)
	p := w.untilPolicy("one drift would be put back", counts(3, 1, 1))
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != "ObserveOnly" || !strings.Contains(ready.Message, "it would make 1 plan now, and makes no plans") {
		t.Errorf("Ready is %+v", ready)
	}
	// Activated, the same policy acts: it was in a position to.
	if plans := w.plans(); len(plans) > 0 {
		t.Fatalf("it made %d plans", len(plans))
	}
	p.Spec.Mode, p.Spec.RequestedBy = v1alpha1.PolicyModeActive, platform
	w.Must(w.As(platform).Update(w.Ctx(), p))
	w.untilTargets("web")
}

func TestAHaltedPolicyMakesNothing(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web", "db")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.Mode = v1alpha1.PolicyModeHalted })
	w.SetImage(alice, "web", evil)
	p := w.untilPolicy("the drift is counted", counts(2, 1, 1))
	if plans := w.plans(); len(plans) > 0 || !strings.Contains(p.Status.WaitingFor, "halted") {
		t.Errorf("%d plans, and it waits for %q", len(plans), p.Status.WaitingFor)
	}
}

// Two assessors that both believe to lead, and one that takes over, make what one
// makes.
func TestASecondLeaderMakesNoDuplicate(t *testing.T) {
	w := newWorld(t)
	first := start(t)
	start(t)
	w.UnderGuard()
	w.running("web", "db", "cache")
	w.policy()
	w.SetImage(alice, "web", evil)
	w.untilTargets("web")
	first.Halt(t)
	start(t)
	// The one that took over has looked when it has seen another drift.
	w.SetImage(alice, "db", evil)
	w.untilPolicy("the second drift is seen, and there is no room for it", counts(3, 2, 1))
	w.untilTargets("web")
}

// One operation is all unfinished plans: with three objects it has one target,
// and the next comes when it has ended.
func TestOneOperationIsAllUnfinishedPlans(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("a", "b", "c", "d", "e", "f", "g", "h")
	w.policy()
	w.untilPolicy("eight objects are selected", counts(8, 0, 0))
	// Two of eight are less than a mass drift, and one operation.
	w.SetImage(alice, "a", evil)
	w.SetImage(alice, "b", evil)
	w.untilTargets("a", "b")
	w.untilPolicy("nothing more is eligible", counts(8, 2, 0))
	for _, p := range w.plans() {
		w.end(&p, v1alpha1.PlanFailed, v1alpha1.StepFailed, v1alpha1.ReasonUnhealthy)
	}
	// Both are tried again, as the second attempt, and a third time; then a person
	// has to look.
	for attempt := range 2 {
		w.Eventually(fmt.Sprint("attempt ", attempt+2), func() error {
			var open []string
			for _, p := range w.plans() {
				if p.Status.Phase == "" {
					for i := range p.Spec.Plan.Targets {
						open = append(open, p.Spec.Plan.Targets[i].Name)
					}
				}
			}
			slices.Sort(open)
			if !slices.Equal(open, []string{"a", "b"}) {
				return fmt.Errorf("under way are %v", open)
			}
			return nil
		})
		for _, p := range w.plans() {
			if p.Status.Phase == "" {
				w.end(&p, v1alpha1.PlanFailed, v1alpha1.StepFailed, v1alpha1.ReasonUnhealthy)
			}
		}
	}
	w.untilPolicy("a person has to look", func(p *v1alpha1.RemediationPolicy) error {
		if !strings.Contains(p.Status.WaitingFor, "2 TooManyAttempts") {
			return fmt.Errorf("it waits for %q", p.Status.WaitingFor)
		}
		return nil
	})
}

func TestAMassDriftIsFrozen(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.UnderGuard()
	w.running("a", "b", "c", "d", "e")
	// It drifts before there is a policy, so that no plan can be quicker than the
	// third drift.
	for _, name := range []string{"a", "b", "c"} {
		w.SetImage(alice, name, evil)
	}
	w.Eventually("the guard counts three", func() error {
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g))
		if g.Status.Drifted != 3 {
			return fmt.Errorf("it counts %d", g.Status.Drifted)
		}
		return nil
	})
	w.policy()
	p := w.untilPolicy("three drifts are frozen", func(p *v1alpha1.RemediationPolicy) error {
		if !v1alpha1.IsDegradedFor(p.Status.Conditions, v1alpha1.ReasonMassDrift) {
			return fmt.Errorf("it is not frozen")
		}
		return counts(5, 3, 0)(p)
	})
	if plans := w.plans(); len(plans) > 0 || !strings.Contains(p.Status.WaitingFor, "3 MassDrift") {
		t.Errorf("%d plans, and it waits for %q", len(plans), p.Status.WaitingFor)
	}
}

func TestAPolicySelects(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	start(t)
	w.UnderGuard()
	other.UnderGuard()
	w.running("web", "db", "cache", "queue")
	other.running("web")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}}}
	})
	w.untilPolicy("three of the Environment are selected", counts(3, 0, 0))
	w.SetImage(alice, "db", evil)
	other.SetImage(alice, "web", evil)
	other.UntilIs("web", "Drifted: Changed "+guarded.ImagePath+" by alice (Untrusted, WriterStamp)")
	w.UntilIs("db", "Drifted: Changed "+guarded.ImagePath+" by alice (Untrusted, WriterStamp)")
	w.SetImage(alice, "web", evil)
	w.untilTargets("web")
	w.untilPolicy("the others are not counted", counts(3, 1, 0))
}

func TestWhatNobodyIsKnownToHaveDoneIsLeftToPeople(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web", "db")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.MinimumSeverity = v1alpha1.SeverityInfo })
	w.Scale(alice, "web", 5) // without a record nothing says who
	w.untilPolicy("it is left out", func(p *v1alpha1.RemediationPolicy) error {
		if !strings.Contains(p.Status.WaitingFor, "1 Unattributed") {
			return fmt.Errorf("it waits for %q", p.Status.WaitingFor)
		}
		return counts(2, 1, 0)(p)
	})
	if plans := w.plans(); len(plans) > 0 {
		t.Errorf("it made %d plans", len(plans))
	}
}

// What was just deployed is being worked on, and looked at again when that is over.
func TestATrustedWriterIsNotDisturbed(t *testing.T) {
	w := newWorld(t)
	now := &inprocess.Ahead{}
	start(t, func(s *assessor.Setup) { s.Clock = now; now.Dates(s.Config) })
	w.UnderGuard()
	deployed := time.Now()
	w.running("web", "db")
	w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.ActiveWriter = v1alpha1.Forbidden })
	w.SetImage(alice, "web", evil)
	p := w.untilPolicy("it waits for the writer", func(p *v1alpha1.RemediationPolicy) error {
		if !strings.Contains(p.Status.WaitingFor, "1 TrustedWriterActive") || p.Status.NextEvaluationTime == nil {
			return fmt.Errorf("it waits for %q until %v", p.Status.WaitingFor, p.Status.NextEvaluationTime)
		}
		return nil
	})
	// A time of the API has whole seconds.
	if next := p.Status.NextEvaluationTime.Time; next.Before(deployed.Add(2*time.Minute-time.Second)) || next.After(time.Now().Add(2*time.Minute+time.Second)) {
		t.Errorf("it looks again at %s, and the deployment began at %s", next, deployed)
	}
	now.Set(time.Now().Add(3 * time.Minute))
	w.SetImage(alice, "db", evil) // an event, for the clock of the timers is the real one
	w.untilTargets("web")         // there is room for one, and it is the older
}

func TestWhatIsWrongWithAPolicyIsSaid(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web")
	stalled := func(reason, field string) func(*v1alpha1.RemediationPolicy) error {
		return func(p *v1alpha1.RemediationPolicy) error {
			c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled)
			if c == nil || c.Reason != reason || !strings.Contains(c.Message, field) {
				return fmt.Errorf("Stalled is %+v", c)
			}
			return nil
		}
	}
	p := w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
	})
	w.SetImage(alice, "web", evil)
	w.untilPolicy("the zone is unknown", stalled("InvalidSchedule", "spec.schedule.maintenanceWindow.timeZone"))
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(p), p))
	p.Spec.Schedule, p.Spec.RequestedBy = v1alpha1.RemediationSchedule{}, platform
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nothing"}}
	w.Must(w.As(platform).Update(w.Ctx(), p))
	w.untilPolicy("it selects nothing", func(p *v1alpha1.RemediationPolicy) error {
		c := meta.FindStatusCondition(p.Status.Conditions, policy.ConditionTargetsSelected)
		if c == nil || !strings.Contains(c.Message, "0 of the 1 guarded object of") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	if plans := w.plans(); len(plans) > 0 {
		t.Errorf("it made %d plans", len(plans))
	}
	lost := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.Name + "-lost"}, Spec: p.Spec}
	lost.Spec.EnvironmentName = "nowhere"
	w.Must(w.As(platform).Create(w.Ctx(), lost))
	w.Eventually("the environment is missing", func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(lost), lost); err != nil {
			return err
		}
		return stalled("UnknownEnvironment", "spec.environmentName")(lost)
	})
	w.Must(admin.Delete(w.Ctx(), lost))
}

func TestEndedPlansGoAfterTheirTime(t *testing.T) {
	w := newWorld(t)
	now := &inprocess.Ahead{}
	start(t, func(s *assessor.Setup) { s.Clock, s.PlanRetention = now, time.Hour; now.Dates(s.Config) })
	w.UnderGuard()
	w.running("web", "db")
	w.policy()
	w.SetImage(alice, "web", evil)
	w.untilTargets("web")
	plan := w.plans()[0]
	now.Set(time.Now().Add(2 * time.Hour))
	w.end(&plan, v1alpha1.PlanCanceled, v1alpha1.StepSkipped, v1alpha1.ReasonStopped)
	looks := 0
	w.Eventually("the plan is gone", func() error {
		live := &v1alpha1.RemediationPlan{}
		err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(&plan), live)
		if apierrors.IsNotFound(err) || err == nil && live.UID != plan.UID { // the drift is there, and soon has the next plan
			return nil
		}
		if err != nil {
			return err
		}
		looks++ // who expects an hour to pass sees no jump: a drift makes it look again
		w.SetEnv(alice, "db", "LOOK", fmt.Sprint(looks))
		return fmt.Errorf("it is there after %d looks", looks)
	})
}
