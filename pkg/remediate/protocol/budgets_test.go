// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAStepWaitsWhileAPodDisruptionBudgetAllowsNoDisruption(t *testing.T) {
	const message = "PodDisruptionBudget web allows no disruption now"
	of := func(protected string) *Target {
		return &Target{Read: Yes, UID: "uid-web-0", Hash: driftedHash, ResourceVersion: "7", Protected: protected}
	}
	tests := map[string]struct {
		none   bool
		asked  v1alpha1.PlanVerb
		state  v1alpha1.StepState
		target *Target
		want   string
	}{
		"no budget is exhausted":                {false, "", v1alpha1.StepPlanned, nil, "protocol.Authorize {0}"},
		"a budget is, so the target is read":    {true, "", v1alpha1.StepPlanned, nil, "protocol.ReadTarget {0}"},
		"the target is not protected":           {true, "", v1alpha1.StepPlanned, of(""), "protocol.Authorize {0}"},
		"the target is":                         {true, "", v1alpha1.StepPlanned, of(message), "waits: " + message},
		"a step that has a place gives it back": {true, "", v1alpha1.StepReserved, of(message), "Planned"},
		"a person passes":                       {true, v1alpha1.PlanExecute, v1alpha1.StepPlanned, of(message), "protocol.Authorize {0}"},
		"a step that may have written goes on":  {true, "", v1alpha1.StepIntent, nil, "protocol.ReadTarget {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			s.Plan.Spec.Control.Verb = test.asked
			s.Plan.Spec.Plan.Targets[0].FirstSeenTime.Time = epoch
			s.Facts.Brakes = &Brakes{Known: true, NoDisruptions: test.none}
			s.Facts = s.Facts.Learn(0, func(f *StepFacts) { f.Target, f.Settled, f.Let = test.target, Yes, Yes })
			e := Next(s)
			got := ends(e)
			if w, ok := e.(WriteStatus); ok && w.Status.DeferralReason != "" {
				got = "waits: " + w.Status.DeferralReason
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A tenant who may write budgets held back the repair of a drift for ever.
func TestABudgetHoldsAStepBackForATimeOnly(t *testing.T) {
	const (
		held   = "waits until "
		passed = "protocol.Authorize {0}"
	)
	until := func(d time.Duration) string { return held + epoch.Add(d).Format(time.TimeOnly) }
	tests := map[string]struct {
		// age is that of the drift, and begun how long ago the plan was made.
		age, begun time.Duration
		oldest     time.Duration
		scheduled  time.Duration
		urgent     bool
		allowed    bool
		want       string
	}{
		"a drift of a moment ago":                      {want: until(longestProtection)},
		"a drift of hours":                             {age: longestProtection - time.Second, begun: time.Hour, want: until(time.Second)},
		"a drift that has waited long enough":          {age: longestProtection, begun: time.Hour, want: passed},
		"an old drift whose plan is new":               {age: 48 * time.Hour, begun: 10 * time.Minute, want: until(20 * time.Minute)},
		"an old drift whose plan is not new":           {age: 48 * time.Hour, begun: leastProtection, want: passed},
		"an old drift whose plan was scheduled":        {age: 48 * time.Hour, begun: 20 * time.Hour, scheduled: 19*time.Hour + 50*time.Minute, want: until(20 * time.Minute)},
		"half of the maximum age is shorter":           {age: time.Hour, begun: time.Hour, oldest: 4 * time.Hour, want: until(time.Hour)},
		"half of the maximum age is over":              {age: 3 * time.Hour, begun: time.Hour, oldest: 4 * time.Hour, want: passed},
		"an urgent target, which may pass":             {urgent: true, allowed: true, want: passed},
		"an urgent target of a policy that forbids it": {urgent: true, want: until(longestProtection)},
		"a target that is not urgent":                  {allowed: true, want: until(longestProtection)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			target := &s.Plan.Spec.Plan.Targets[0]
			target.FirstSeenTime.Time, s.Plan.CreationTimestamp.Time = epoch.Add(-test.age), epoch.Add(-test.begun)
			if test.urgent {
				target.Severity.Urgency = v1alpha1.UrgencyImmediate
			}
			if test.scheduled > 0 {
				at := metav1.NewTime(s.Plan.CreationTimestamp.Add(test.scheduled))
				s.Plan.Spec.Plan.ScheduledTime = &at
			}
			s.Facts.Brakes = &Brakes{Known: true, NoDisruptions: true, UrgentPasses: test.allowed, MaximumDriftAge: test.oldest}
			of := &Target{Read: Yes, UID: "uid-web-0", Hash: driftedHash, ResourceVersion: "7", Protected: "a budget protects it"}
			s.Facts = s.Facts.Learn(0, func(f *StepFacts) { f.Target, f.Settled, f.Let = of, Yes, Yes })
			e := Next(s)
			got := ends(e)
			if w, ok := e.(WriteStatus); ok && w.Status.ResumeTime != nil {
				got = held + w.Status.ResumeTime.UTC().Format(time.TimeOnly)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
