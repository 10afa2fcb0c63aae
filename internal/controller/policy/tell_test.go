// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// The message of an escalation names the command by which a person goes on.
func TestAnEscalationNamesTheCommandOfAPerson(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		c.Policy.Spec.MaximumDriftAge = &metav1.Duration{Duration: time.Minute}
		c.Drift("db", evil)
	})
	b.look()
	const command = "kubectl plumbline remediate deployment.apps/db deployment.apps/web -n shop --policy "
	if events := b.events(); len(events) != 1 || !strings.HasSuffix(events[0], "; to remediate them now: "+command+b.Policy.Name) {
		t.Errorf("events are %q", events)
	}
	if len(b.told) != 1 || !strings.HasSuffix(b.told[0].Reason, "a person has to decide; to remediate it now: "+command+b.Policy.Name) {
		t.Errorf("told %+v", b.told)
	}
}

// One policy says both: people are told first, and the plan follows.
func TestPeopleAreToldOnceAndThePlanFollowsWhenTheDriftIsOlder(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		c.Policy.Spec.Escalation = &v1alpha1.RemediationEscalation{
			InitialAction:    v1alpha1.InitialNotifyOnly,
			RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: &metav1.Duration{Duration: time.Hour}},
		}
	})
	if result := b.look(); result.RequeueAfter != 40*time.Minute {
		t.Errorf("it looks again in %s, want when the drift is an hour old", result.RequeueAfter)
	}
	b.look()
	if len(b.plans()) != 0 || len(b.told) != 1 || b.told[0].Type != notify.PlanEscalated || !strings.HasPrefix(b.told[0].Reason, "stage Notify: ") {
		t.Fatalf("in the first stage there are %d plans, and told is %+v", len(b.plans()), b.told)
	}
	events := b.events()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning RemediationEscalated 1 drifted object is remediated later: Deployment shop/web (stage Notify: ") {
		t.Errorf("events are %q", events)
	}
	if waits := b.status().WaitingFor; !strings.HasPrefix(waits, "1 NotifyStage (stage Notify: ") {
		t.Errorf("it waits for %q", waits)
	}
	b.clock.SetTime(epoch.Add(40 * time.Minute))
	b.look()
	if len(b.plans()) != 1 {
		t.Errorf("in the second stage there are %d plans; it waits for %q", len(b.plans()), b.status().WaitingFor)
	}
	if last := b.told[len(b.told)-1]; last.Type != notify.PlanCreated || last.Waiting || last.Reason != "" {
		t.Errorf("told %+v", last)
	}
}

func TestAPlanThatWaitsForAPersonSaysWhatToRun(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) { c.Policy.Spec.Trigger = v1alpha1.TriggerManual })
	b.look()
	plan := b.plans()[0]
	want := "it waits for a person: kubectl plumbline plan execute " + plan.Name + " -n shop"
	if len(b.told) != 1 || !b.told[0].Waiting || b.told[0].Reason != want {
		t.Errorf("told %+v, want %q", b.told, want)
	}
	if events := b.events(); len(events) != 1 || !strings.HasSuffix(events[0], "; "+want) {
		t.Errorf("events are %q", events)
	}
}

// An executor tells about the targets of a plan that begins at once.
func TestOnlyAPlanThatDoesNotBeginAtOnceHasAnEvent(t *testing.T) {
	tests := map[string]struct {
		executor string
		trigger  v1alpha1.RemediationTrigger
		want     int
	}{
		"a plan that begins at once":     {"executor", v1alpha1.TriggerImmediate, 0},
		"a plan that waits for a person": {"executor", v1alpha1.TriggerManual, 1},
		"a plan without an executor":     {"", v1alpha1.TriggerImmediate, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, _ := newAccessBench(t, func(c *planningtest.Cluster) { c.Policy.Spec.Trigger = tc.trigger })
			b.r.Executor = tc.executor
			b.look()
			if got := b.events(); len(b.plans()) != 1 || len(got) != tc.want {
				t.Errorf("%d plans, events are %q, want %d", len(b.plans()), got, tc.want)
			}
			if len(b.told) != 1 {
				t.Errorf("told %+v", b.told)
			}
		})
	}
}

func driftOf(name string, level v1alpha1.SeverityLevel) *planner.Drift {
	return &planner.Drift{
		Namespace: "shop", Baseline: "deployments.apps." + name, DriftedHash: "h", FirstSeen: time.Unix(1, 0),
		Severity: v1alpha1.Severity{Level: level},
	}
}

// newSubject has a policy, and knows of no drift.
func newSubject() *subject {
	p := &v1alpha1.RemediationPolicy{}
	return &subject{policy: p, gathered: &planning.Gathered{}}
}

// An escalation is routed by its severity, so a mild drift that stands first must not
// stand for a severe one.
func TestAnEscalationHasTheWorstSeverityOfItsDrifts(t *testing.T) {
	s := newSubject()
	s.out.LeftOut = []planner.LeftOut{{Drift: driftOf("mild", v1alpha1.SeverityLow)}}
	s.out.LeftOut[0].Reason = planner.ReasonAttempts
	s.out.Notify = []*planner.Drift{driftOf("severe", v1alpha1.SeverityCritical)}
	e := escalated(s, s.escalations())
	if e.Severity != v1alpha1.SeverityCritical {
		t.Errorf("the severity is %s, want Critical", e.Severity)
	}
}

// A channel with a minimum severity was left out at the milder level.
func TestAnEscalationIsToldAgainWhenItsDriftBecomesMoreSevere(t *testing.T) {
	const critical, high, low = v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityLow
	tests := map[string]struct {
		levels []v1alpha1.SeverityLevel // at one look after the other; empty: no drift
		want   []int                    // how many are news
	}{
		"the same level is told once":           {[]v1alpha1.SeverityLevel{low, low, low}, []int{1, 0, 0}},
		"a higher level is told again":          {[]v1alpha1.SeverityLevel{low, high, high, critical}, []int{1, 1, 0, 1}},
		"a lower level is no news":              {[]v1alpha1.SeverityLevel{high, low, high}, []int{1, 0, 0}},
		"a drift that was gone is told anew":    {[]v1alpha1.SeverityLevel{high, "", low}, []int{1, 0, 1}},
		"a level after an unknown one is news":  {[]v1alpha1.SeverityLevel{"Fatal", low}, []int{1, 1}},
		"an unknown level after a known is not": {[]v1alpha1.SeverityLevel{low, "Fatal"}, []int{1, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var m memory
			s := newSubject()
			ids := map[string]bool{}
			var got []int
			for _, level := range tc.levels {
				var all []escalation
				if level != "" {
					all = []escalation{{driftOf("web", level), "", "why"}, {driftOf("web", level), "", "why"}}
				}
				news := m.news(s.policy, all, epoch)
				got = append(got, len(news))
				if len(news) > 0 {
					ids[escalated(s, news).ID()] = true
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("news (-want +got):\n%s", diff)
			}
			if tc.want[1] == 1 && len(ids) < 2 {
				t.Errorf("the ids of two events are the same, and the second would not be sent: %v", ids)
			}
		})
	}
}
