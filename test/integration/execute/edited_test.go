// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// interruption is a plan for web and api whose first target is written, and not ready yet.
type interruption struct {
	*world
	gate   remediation.Gate
	policy *v1alpha1.RemediationPolicy
	plan   *v1alpha1.RemediationPlan
}

// interrupted prepares so many plans, each in a world of its own; one assessor and one
// executor work for all.
func interrupted(t *testing.T, n int) []*interruption {
	t.Helper()
	startAssessor(t)
	all, worlds := make([]*interruption, n), make([]*remediation.World, n)
	for i := range all {
		all[i] = &interruption{world: newWorld(t)}
		all[i].RolloutsThrough(&all[i].gate)
		all[i].Guard()
		worlds[i] = all[i].World
	}
	remediation.UnderGuards(worlds)
	remediation.Drifted(worlds, "web", "api")
	for _, i := range all {
		i.policy = i.world.policy(slowly, selectsNothing)
		i.plan = i.world.plan(i.policy, "web", "api")
		i.gate.Shut()
		t.Cleanup(i.gate.Open)
	}
	startExecutor(t, newEvidence(t))
	for _, i := range all {
		i.UntilPlan(i.plan, "the first is written", hasWritten)
	}
	return all
}

// within is the interruption in a test within the test.
func (i *interruption) within(t *testing.T) *interruption {
	return &interruption{world: i.world.within(t), policy: i.policy, plan: i.plan}
}

// edit is a change of a policy, and what it does to a plan that is under way.
type edit struct {
	change  func(*v1alpha1.RemediationPolicySpec)
	refused string // by the API server, in these words
	stalled string // what the policy says of itself then, if it does
	ends    string // the steps
}

const onlyTheFirst = "Skipped PolicyChanged Verified"

func mistakes() map[string]edit {
	return map[string]edit{
		"a zone that there is not": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
		}, stalled: "timeZone", ends: onlyTheFirst},
		"hours that never meet the window": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule = v1alpha1.RemediationSchedule{
				MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00"}, AllowedStart: "08:00", AllowedEnd: "18:00",
			}
		}, stalled: "never meet the maintenance window", ends: onlyTheFirst},
		"a selector of nothing": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nothing"}}
		}, ends: onlyTheFirst},
		"a malformed selector": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}}
		}, refused: "operator is one of In, NotIn, Exists, DoesNotExist", ends: "Verified Verified"},
		"a kind that no API server has": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Resources = []v1alpha1.GuardedResource{{APIVersion: "nowhere.example/v1", Kind: "Nothing"}}
		}, ends: onlyTheFirst},
		"a channel without a type": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Notifications.Channels = []v1alpha1.NotificationChannel{{Name: "nobody"}}
		}, refused: "spec.notifications.channels", ends: "Verified Verified"},
		"a minimum age above the maximum": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.MinimumDriftAge, s.MaximumDriftAge = &metav1.Duration{Duration: 2 * time.Hour}, &metav1.Duration{Duration: time.Hour}
		}, refused: "a drift would be too old before it is old enough", ends: "Verified Verified"},
		"nobody for whom the policy acts": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.RequestedBy = ""
		}, refused: "spec.requestedBy", ends: "Verified Verified"},
		"a window that is never open": {change: func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "02:00"}
		}, refused: "maintenanceWindow", ends: "Verified Verified"},
	}
}

// A person edits a policy into a mistake while one of its plans is under way. What is written
// is seen to its end, and the policy that is a mistake begins nothing more.
func TestAPolicyThatIsEditedIntoAMistakeBeginsNothingMore(t *testing.T) {
	edits := mistakes()
	worlds := interrupted(t, len(edits))
	for name, e := range edits {
		i := worlds[0]
		worlds = worlds[1:]
		t.Run(name, func(t *testing.T) {
			w := i.within(t)
			before := w.policy.DeepCopy()
			e.change(&w.policy.Spec)
			err := w.As(platform).Patch(t.Context(), w.policy, client.MergeFrom(before)) // the assessor writes the status meanwhile
			switch {
			case e.refused == "":
				w.Must(err)
			case err == nil || !strings.Contains(err.Error(), e.refused):
				t.Fatalf("the edit gives %v, want a refusal that says %q", err, e.refused)
			}
			if e.stalled != "" {
				w.untilStalled(e.stalled)
			}
			i.gate.Open()
			plan := w.Ended(w.plan)
			if got := endsOfSteps(plan); got != e.ends {
				t.Errorf("the steps ended as %s, want %s: %s", got, e.ends, remediation.Describe(plan))
			}
			if authorized := imageOf(w.Live("api")) == guarded.Image; authorized != (e.refused != "") {
				t.Errorf("the second target has the authorized image: %t", authorized)
			}
		})
	}
}

// untilStalled waits until the policy says that it is stalled, in these words.
func (i *interruption) untilStalled(words string) {
	i.t.Helper()
	i.untilPolicy(i.policy, "the policy says what is wrong", func(s *v1alpha1.RemediationPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, words)
	})
}

// tampering is a change of the status of a ledger by hand, and what it does to a plan under
// way. waits begins the reason for which the plan waits then; mend is what a person does.
type tampering struct {
	change, mend func(*v1alpha1.RemediationLedgerStatus)
	waits        string
}

func tamperings() map[string]tampering {
	ended := func(outcome v1alpha1.LedgerOutcome) func(*v1alpha1.RemediationLedgerStatus) {
		return func(s *v1alpha1.RemediationLedgerStatus) {
			s.Entries[0].CompletionTime, s.Entries[0].Outcome = &metav1.Time{Time: time.Now()}, outcome
		}
	}
	return map[string]tampering{
		"the entry of the step is removed":           {change: func(s *v1alpha1.RemediationLedgerStatus) { s.Entries = nil }},
		"the step is said to have succeeded":         {change: ended(v1alpha1.LedgerSucceeded)},
		"the step is said to have failed":            {change: ended(v1alpha1.LedgerFailed)},
		"the entry belongs to another epoch":         {change: func(s *v1alpha1.RemediationLedgerStatus) { s.Entries[0].Epoch += 7 }},
		"the entry belongs to another policy":        {change: func(s *v1alpha1.RemediationLedgerStatus) { s.Entries[0].PolicyUID = "stranger" }},
		"all is forgotten":                           {change: func(s *v1alpha1.RemediationLedgerStatus) { s.Entries, s.Breakers, s.Chains = nil, nil, nil }},
		"the breaker is half open without its probe": {change: breaker(v1alpha1.BreakerHalfOpen), mend: noBreaker, waits: "CircuitBreaker: open"},
		"the breaker is open without a time":         {change: breaker(v1alpha1.BreakerOpen), mend: noBreaker, waits: "CircuitBreaker: open, since an unknown time"},
		"nothing is granted before tomorrow": {
			change: func(s *v1alpha1.RemediationLedgerStatus) {
				s.GrantStartTime = &metav1.Time{Time: time.Now().Add(24 * time.Hour)}
			},
			mend: func(s *v1alpha1.RemediationLedgerStatus) { s.GrantStartTime = nil }, waits: "LedgerAge: ",
		},
	}
}

func breaker(state v1alpha1.BreakerState) func(*v1alpha1.RemediationLedgerStatus) {
	return func(s *v1alpha1.RemediationLedgerStatus) {
		s.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: s.Entries[0].PolicyUID, State: state, Failures: 3}}
	}
}

func noBreaker(s *v1alpha1.RemediationLedgerStatus) { s.Breakers = nil }

// A person edits the ledger while a plan is under way. The API server refuses that to all but
// the executor, so the test has the executor's token. No edit has a step written twice, and
// each plan comes to an end, if need be once a person has mended the ledger.
func TestALedgerThatIsEditedWhileAPlanIsUnderWayStopsNoPlanForGood(t *testing.T) {
	edits := tamperings()
	worlds := interrupted(t, len(edits))
	for name, e := range edits {
		i := worlds[0]
		worlds = worlds[1:]
		t.Run(name, func(t *testing.T) {
			w := i.within(t)
			if err := w.editLedger(admin, e.change); !apierrors.IsForbidden(err) {
				t.Errorf("the edit by an administrator gives %v, want a refusal", err)
			}
			executor, err := apiserver.As(config, remediation.ExecutorUser)
			w.Must(err)
			w.Must(w.editLedger(executor, e.change))
			i.gate.Open()
			if e.mend != nil {
				w.UntilPlan(w.plan, "it waits because of the edit", func(p *v1alpha1.RemediationPlan) bool {
					return strings.HasPrefix(p.Status.DeferralReason, e.waits)
				})
				w.Must(w.editLedger(executor, e.mend))
			}
			plan := w.Ended(w.plan)
			if plan.Status.Phase != v1alpha1.PlanSucceeded {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
			if wrong := w.Held(plan); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

// editLedger changes the status of the world's ledger.
func (i *interruption) editLedger(as client.Client, change func(*v1alpha1.RemediationLedgerStatus)) error {
	i.t.Helper()
	for attempt := 0; ; attempt++ {
		l := &v1alpha1.RemediationLedger{}
		i.Must(admin.Get(i.t.Context(), types.NamespacedName{Namespace: "plumbline-system", Name: i.environment}, l))
		change(&l.Status)
		l.Status.Sequence++
		err := as.Status().Update(i.t.Context(), l)
		if !apierrors.IsConflict(err) || attempt == 5 {
			if err != nil {
				return fmt.Errorf("editing the ledger: %w", err)
			}
			return nil
		}
	}
}
