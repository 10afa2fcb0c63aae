// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// situation is everything an explanation depends on.
type situation struct {
	in     planner.Input
	drift  *planner.Drift
	around Surroundings
}

// fine is one in which the drift is put back now.
func fine() *situation {
	s := &situation{in: planner.Input{
		Policy: planner.Policy{
			PlanPolicy: v1alpha1.PlanPolicy{Name: "p", UID: "policy-uid", Digest: "sha256:p"},
			Spec: v1alpha1.RemediationPolicySpec{
				EnvironmentName: "production", Mode: v1alpha1.PolicyModeActive, Trigger: v1alpha1.TriggerAgeThreshold,
				MinimumSeverity: v1alpha1.SeverityHigh, Action: v1alpha1.ActionReconcile,
				MinimumDriftAge: &metav1.Duration{Duration: 15 * time.Minute}, MaximumDriftAge: &metav1.Duration{Duration: 24 * time.Hour},
			},
		},
		Drifts: []planner.Drift{{
			Namespace: "shop", Baseline: "deployments.apps.web", UID: "uid-web", DriftedHash: "pl1:d",
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			State:  v1alpha1.StateDrifted, FirstSeen: epoch.Add(-20 * time.Minute),
			Severity:   v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 65, Floor: v1alpha1.SeverityHigh, Factors: []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}}},
			Authorized: &planner.Repair{Revision: "web-1", RevisionHash: "pl1:g", DesiredHash: "pl1:g"},
			Managed:    true, Attributed: true,
		}},
		Scope:   planner.Scope{Selected: 40, Healthy: 30},
		Opening: planner.Opening{Open: true, Why: "may act at any time"}, InitiatedBy: planner.InitiatedByItself, Now: epoch,
	}}
	s.drift = &s.in.Drifts[0]
	status := ledger.Begin(epoch, true)
	s.around.Environment = Ledger{Name: "production", Known: true, Status: &status, Rules: ledger.Rules{Policy: ledger.Limits{
		Caps: ledger.Caps{Concurrent: new(int32(1)), PerHour: new(int32(2)), PerDay: new(int32(50))}, Cooldown: 5 * time.Minute, FailureThreshold: 3, OpenDuration: 30 * time.Minute,
	}}}
	s.around.Cluster = Ledger{Name: "plumbline-cluster", Known: true}
	return s
}

// done adds a step of the policy that ended some time ago.
func (s *situation) done(ago time.Duration, target string) {
	at := metav1.NewTime(epoch.Add(-ago))
	s.around.Environment.Status.Entries = append(s.around.Environment.Status.Entries, v1alpha1.LedgerEntry{
		StepReference: v1alpha1.StepReference{Namespace: "shop", PlanName: "earlier", PlanUID: "e"}, PolicyUID: "policy-uid",
		TargetUID: target, ReservationTime: at, CompletionTime: &at, Outcome: v1alpha1.LedgerSucceeded,
	})
}

// planIn returns a plan of the policy with one target.
func planIn(namespace, baseline string) v1alpha1.RemediationPlan {
	return v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "earlier"},
		Spec:       v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{Targets: []v1alpha1.PlanTarget{{BaselineName: baseline}}}},
	}
}

func TestVerdicts(t *testing.T) {
	closed := planner.Opening{Next: epoch.Add(16 * time.Hour), Why: "the window 02:00-06:00 UTC is closed"}
	tests := map[string]struct {
		change  func(*situation)
		want    Verdict
		because string
		at      time.Duration // after the epoch
	}{
		"nothing is in its way":       {func(*situation) {}, RepairedNow, "", 0},
		"a policy that observes":      {func(s *situation) { s.in.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly }, NeverUnless, "only observes", 0},
		"a policy that is halted":     {func(s *situation) { s.in.Policy.Spec.Mode = v1alpha1.PolicyModeHalted }, NeverUnless, "halted", 0},
		"a mode of tomorrow":          {func(s *situation) { s.in.Policy.Spec.Mode = "Dry" }, NeverUnless, "unknown", 0},
		"a policy that notifies":      {func(s *situation) { s.in.Policy.Spec.Action = v1alpha1.ActionNotifyOnly }, NeverUnless, "does not write", 0},
		"a policy for people":         {func(s *situation) { s.in.Policy.Spec.Trigger = v1alpha1.TriggerManual }, Executable, "kubectl plumbline plan execute", 0},
		"an unmanaged object":         {func(s *situation) { s.drift.Managed = false }, NeverUnless, "Unmanaged", 0},
		"a rollout under way":         {func(s *situation) { s.drift.Rollout = "run 3 of ABRelease web" }, RepairedAfter, "run 3 of ABRelease web is under way", 0},
		"a mass drift":                {func(s *situation) { s.drift.Frozen = "SpecGuard/web" }, NeverUnless, "SpecGuard/web", 0},
		"a fight":                     {func(s *situation) { s.drift.Contended = true }, RepairedAfter, "undoing", 0},
		"an object nobody could read": {func(s *situation) { s.drift.State = v1alpha1.StateUnknown }, NotKnown, "Unknown", 0},
		"an object nobody could read, and a halted policy": {
			func(s *situation) {
				s.drift.State, s.in.Policy.Spec.Mode = v1alpha1.StateUnknown, v1alpha1.PolicyModeHalted
			}, NeverUnless, "halted", 0,
		},
		"too young":                 {func(s *situation) { s.drift.FirstSeen = epoch.Add(-5 * time.Minute) }, RepairedAt, "acted upon at", 10 * time.Minute},
		"outside the window":        {func(s *situation) { s.in.Opening = closed }, RepairedAt, "02:00-06:00", 16 * time.Hour},
		"a window that never opens": {func(s *situation) { s.in.Opening = planner.Opening{Why: "never"} }, NeverUnless, "never", 0},
		"urgent, outside the window": {func(s *situation) {
			s.in.Opening, s.in.Policy.Spec.Schedule.Urgent, s.drift.Severity.Urgency = closed, v1alpha1.Allowed, v1alpha1.UrgencyImmediate
		}, RepairedNow, "", 0},
		"too young, and outside the window": {func(s *situation) {
			s.drift.FirstSeen, s.in.Opening = epoch.Add(-5*time.Minute), closed
		}, RepairedAt, "02:00-06:00", 16 * time.Hour},
		"people are told first": {func(s *situation) {
			s.in.Policy.Spec.Escalation = escalation(&metav1.Duration{Duration: 2 * time.Hour}, v1alpha1.SeverityCritical)
		}, RepairedAt, "stage Notify", 100 * time.Minute},
		"people are told first, and no age ends that": {func(s *situation) {
			s.in.Policy.Spec.Escalation = escalation(nil, v1alpha1.SeverityCritical)
		}, NeverUnless, "stage Notify", 0},
		"the second stage": {func(s *situation) {
			s.in.Policy.Spec.Escalation = escalation(&metav1.Duration{Duration: 20 * time.Minute}, "")
		}, RepairedNow, "", 0},
		"no worse than at first": {func(s *situation) {
			s.in.Policy.Spec.Trigger, s.drift.Severity.First = v1alpha1.TriggerSeverityEscalation, v1alpha1.SeverityHigh
		}, NeverUnless, "no more than at first", 0},
		"too mild":             {func(s *situation) { s.drift.Severity.Level = v1alpha1.SeverityLow }, NeverUnless, "below High", 0},
		"too old":              {func(s *situation) { s.drift.FirstSeen = epoch.Add(-25 * time.Hour) }, NeverUnless, "a person", 0},
		"tried three times":    {func(s *situation) { s.drift.Attempts = 3 }, NeverUnless, "a person", 0},
		"somebody canceled":    {func(s *situation) { s.drift.CanceledBy = "bob" }, NeverUnless, "bob", 0},
		"nobody knows who":     {func(s *situation) { s.drift.Attributed = false }, NeverUnless, "exceptions.unattributed", 0},
		"Argo CD":              {func(s *situation) { s.drift.GitOps = "Argo CD" }, NeverUnless, "exceptions.gitOps", 0},
		"somebody works on it": {func(s *situation) { s.drift.ActiveWriter, s.drift.ActiveUntil = "ci", epoch.Add(time.Minute) }, RepairedAt, "ci", time.Minute},
		"nothing to scale":     {func(s *situation) { s.in.Policy.Spec.Action = v1alpha1.ActionScale }, NeverUnless, "replicas did not change", 0},
		"a plan of the policy has it": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "deployments.apps.web")}
		}, UnderWay, "earlier", 0},
		"a plan has another object of its name": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("billing", "deployments.apps.web")}
		}, RepairedNow, "", 0},
		"a plan has it":       {func(s *situation) { s.drift.Claim = "other" }, UnderWay, "other", 0},
		"too few are healthy": {func(s *situation) { s.in.Scope.Unhealthy = 20 }, RepairedAfter, "30 of the 50", 0},
		"no room": {func(s *situation) {
			s.in.Scope.Selected = 4
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "other")}
		}, RepairedAfter, "one operation", 0},
		"a worse drift takes the room": {func(s *situation) {
			worse := *s.drift
			worse.Baseline, worse.Severity.Score = "deployments.apps.db", 90
			s.in.Scope.Selected = 4
			s.in.Drifts = append(s.in.Drifts, worse)
			s.drift = &s.in.Drifts[0]
		}, RepairedAfter, "one operation", 0},
		"the cooldown":     {func(s *situation) { s.done(time.Minute, "other") }, RepairedAt, "a moment ago", 4 * time.Minute},
		"the hour is full": {func(s *situation) { s.done(50*time.Minute, "a"); s.done(40*time.Minute, "b") }, RepairedAt, "2 of 2 in the last hour", 10 * time.Minute},
		"one runs": {func(s *situation) {
			s.done(time.Hour, "a")
			s.around.Environment.Status.Entries[0].CompletionTime = nil
		}, RepairedAfter, "1 of 1 at once", 0},
		"the breaker is open": {func(s *situation) {
			at := metav1.NewTime(epoch.Add(-10 * time.Minute))
			s.around.Environment.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: "policy-uid", State: v1alpha1.BreakerOpen, Generation: 1, Failures: 3, LastOpenTime: &at}}
		}, RepairedAt, "", 20 * time.Minute},
		"a cap of nothing per hour": {func(s *situation) { s.around.Environment.Rules.All.PerHour = new(int32(0)) }, NeverUnless, "0 of 0", 0},
		"a cap of nothing at once":  {func(s *situation) { s.around.Environment.Rules.All.Concurrent = new(int32(0)) }, NeverUnless, "0 of 0", 0},
		"a cap of nothing":          {func(s *situation) { s.around.Environment.Rules.All.PerDay = new(int32(0)) }, NeverUnless, "0 of 0", 0},
		"the ledger is halted":      {func(s *situation) { s.around.Cluster.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "night"} }, NeverUnless, "bob halted it: night", 0},
		"a ledger nobody may read":  {func(s *situation) { s.around.Cluster.Known = false }, NotKnown, "could not be read", 0},
		"caps nobody may read":      {func(s *situation) { s.around.Cluster.CapsUnknown = true }, RepairedNow, "", 0},
		"caps that are not known, and a new ledger": {func(s *situation) {
			s.around.Cluster.CapsUnknown, s.around.Cluster.PastUnknown = true, true
		}, RepairedAt, "was recreated", 24 * time.Hour},
		"a cap that another policy takes up": {func(s *situation) {
			s.done(time.Hour, "a")
			entry := &s.around.Environment.Status.Entries[0]
			entry.CompletionTime, entry.PolicyUID = nil, "another"
			s.around.Environment.Rules.All.Concurrent = new(int32(1))
		}, RepairedAfter, "1 of 1 at once", 0},
		"a ledger that was deleted":      {func(s *situation) { s.around.Environment.Status, s.around.Environment.PastUnknown = nil, true }, RepairedAt, "was recreated", 24 * time.Hour},
		"a ledger that is not there yet": {func(s *situation) { s.around.Environment.Status = nil }, RepairedNow, "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := fine()
			tc.change(s)
			e := Of(&s.in, s.drift, s.around)
			if e.Verdict != tc.want || !strings.Contains(e.Because, tc.because) || (tc.because == "") != (e.Because == "") && tc.want == RepairedNow {
				t.Errorf("%s because %q, want %s because %q", e.Verdict, e.Because, tc.want, tc.because)
			}
			if got := e.At; tc.want == RepairedAt && !got.Equal(epoch.Add(tc.at)) {
				t.Errorf("at %s, want %s", got, epoch.Add(tc.at))
			}
			if e.String() == "" || strings.Contains(e.String(), "unknown verdict") {
				t.Errorf("it says %q", e.String())
			}
		})
	}
}

func escalation(age *metav1.Duration, severity v1alpha1.SeverityLevel) *v1alpha1.RemediationEscalation {
	return &v1alpha1.RemediationEscalation{RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: age, MinimumSeverity: severity}}
}

// waiting returns a plan of a policy with trigger Manual.
func waiting() v1alpha1.RemediationPlan {
	p := planIn("shop", "deployments.apps.web")
	p.Spec.Plan.Trigger = v1alpha1.TriggerManual
	return p
}

// A person reads what to run where nothing is put back without a person, and reads nothing
// where the command would be refused.
func TestTheCommandOfAPerson(t *testing.T) {
	const remediate = "kubectl plumbline remediate deployment.apps/web -n shop --policy p"
	tooOld := func(s *situation) { s.drift.FirstSeen = epoch.Add(-25 * time.Hour) }
	for name, tc := range map[string]struct {
		change func(*situation)
		want   string
	}{
		"what is put back by itself needs none":      {func(*situation) {}, ""},
		"what is put back later needs none":          {func(s *situation) { s.drift.FirstSeen = epoch }, ""},
		"a drift that is too old":                    {tooOld, remediate},
		"three plans in vain":                        {func(s *situation) { s.drift.Attempts = 3 }, remediate},
		"a plan that was canceled":                   {func(s *situation) { s.drift.CanceledBy = "bob" }, remediate},
		"a drift that is too mild":                   {func(s *situation) { s.drift.Severity.Level = v1alpha1.SeverityLow }, remediate},
		"a stage that no time ends":                  {func(s *situation) { s.in.Policy.Spec.Escalation = escalation(nil, v1alpha1.SeverityCritical) }, remediate},
		"a drift that is too old in a mass drift":    {func(s *situation) { tooOld(s); s.drift.Frozen = "SpecGuard/web" }, ""},
		"a drift that is too old and unmanaged":      {func(s *situation) { tooOld(s); s.drift.Managed = false }, ""},
		"a drift that is too old, a policy observes": {func(s *situation) { tooOld(s); s.in.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly }, ""},
		"a policy that only notifies":                {func(s *situation) { s.in.Policy.Spec.Action = v1alpha1.ActionNotifyOnly }, ""},
		"a plan that waits for a person": {
			func(s *situation) { s.in.UnderWay = []v1alpha1.RemediationPlan{waiting()} }, "kubectl plumbline plan execute earlier -n shop",
		},
		"a plan that a person has executed": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{waiting()}
			s.in.UnderWay[0].Spec.Control.Verb = v1alpha1.PlanExecute
		}, ""},
		"a plan that has begun": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{waiting()}
			s.in.UnderWay[0].Status.StartTime = new(metav1.NewTime(epoch))
		}, ""},
		"a plan that begins by itself": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "deployments.apps.web")}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fine()
			tc.change(s)
			if e := Of(&s.in, s.drift, s.around); e.Command != tc.want {
				t.Errorf("the command is %q, want %q", e.Command, tc.want)
			}
		})
	}
}

// Every gate is told, with what is compared, also behind a closed one.
func TestEveryGateIsTold(t *testing.T) {
	s := fine()
	s.in.Policy.Spec.Mode = v1alpha1.PolicyModeHalted
	s.drift.Managed = false
	e := Of(&s.in, s.drift, s.around)
	want := []string{
		"Mode", "Trigger", "Action", "Guard", "Brakes", "UnderWay", "Window", "Severity", "Age", "Attempts", "Exceptions", "Presence", "Applicability",
		"Health", "BlastRadius", "plumbline-cluster/Halt", "plumbline-cluster/LedgerAge", "production/CircuitBreaker", "production/MaxPerHour", "production/CapPerDay",
	}
	at := -1
	for _, name := range want {
		found := -1
		for i := range e.Gates {
			if e.Gates[i].Name == name {
				found = i
			}
		}
		if found <= at {
			t.Errorf("%s is number %d, after %d", name, found, at)
		}
		at = found
	}
	for _, g := range e.Gates {
		if (g.State == Closed) != (g.Needs != NeedsNothing) || g.State == Closed && g.Message == "" {
			t.Errorf("%+v", g)
		}
		if g.Name == "Severity" && (g.Value != "High (score 65: DriftType 80 × 30 %, at least High for the changed fields)" || g.Limit != "at least High") {
			t.Errorf("severity is told as %q of %q", g.Value, g.Limit)
		}
		if g.Name == "Age" && (g.Value != "20m0s" || g.Limit != "at least 15m0s, at most 24h0m0s") {
			t.Errorf("age is told as %q of %q", g.Value, g.Limit)
		}
	}
}

// A missing object without the time at which it was first seen to be so was 2562047h old.
func TestADriftWithoutATimeHasNoAge(t *testing.T) {
	s := fine()
	s.drift.State, s.drift.FirstSeen = v1alpha1.StateMissing, time.Time{}
	for _, g := range Of(&s.in, s.drift, s.around).Gates {
		if g.Name == "Age" && g.Value != "unknown" {
			t.Errorf("the age is told as %q", g.Value)
		}
	}
}

// A policy's limits and its breaker are in its Environment's ledger, and nowhere else;
// whatever stands in the cluster's under the same policy closes nothing.
func TestTheGatesOfEachLedger(t *testing.T) {
	s := fine()
	at := metav1.NewTime(epoch.Add(-time.Minute))
	cluster := ledger.Begin(epoch, true)
	cluster.Entries = s.around.Environment.Status.Entries
	cluster.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: "policy-uid", State: v1alpha1.BreakerOpen, Generation: 1, Failures: 3, LastOpenTime: &at}}
	s.around.Cluster.Status = &cluster
	s.around.Cluster.Rules.All = ledger.Caps{Concurrent: new(int32(10)), PerHour: new(int32(100)), PerDay: new(int32(500))}
	e := Of(&s.in, s.drift, s.around)
	var text strings.Builder
	for _, g := range e.Gates {
		if strings.Contains(g.Name, "/") {
			fmt.Fprintf(&text, "%-33s %-6s %s\n", g.Name, g.State, g.Message)
		}
	}
	golden.Check(t, "testdata/ledgers.txt", text.String())
	if e.Verdict != RepairedNow {
		t.Errorf("it says that %s", e.String())
	}
}

// What the planner would do and what is explained agree: a drift in a plan has
// nothing in its way before the ledgers, and one left out has.
func TestExplanationsAgreeWithPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fine()
		base := *s.drift
		s.in.Drifts = nil
		for i := range rapid.IntRange(1, 8).Draw(t, "drifts") {
			d := base
			d.Baseline = string(rune('a' + i))
			d.Managed = rapid.IntRange(0, 5).Draw(t, "managed") > 0
			d.Attributed = rapid.IntRange(0, 5).Draw(t, "attributed") > 0
			d.Attempts = rapid.IntRange(0, 3).Draw(t, "attempts")
			d.FirstSeen = epoch.Add(-time.Duration(rapid.IntRange(0, 1600).Draw(t, "minutes")) * time.Minute)
			s.in.Drifts = append(s.in.Drifts, d)
		}
		if rapid.Bool().Draw(t, "escalation") {
			s.in.Policy.Spec.Escalation = escalation(&metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 1500).Draw(t, "age")) * time.Minute}, "")
		}
		s.in.Scope = planner.Scope{Selected: rapid.IntRange(8, 40).Draw(t, "selected"), Healthy: rapid.IntRange(0, 9).Draw(t, "healthy"), Unhealthy: rapid.IntRange(0, 3).Draw(t, "unhealthy")}
		out := planner.Make(&s.in)
		left := map[string]planner.LeftOut{}
		for _, l := range out.LeftOut {
			left[l.Drift.Baseline] = l
		}
		for i := range s.in.Drifts {
			d := &s.in.Drifts[i]
			e := Of(&s.in, d, s.around)
			l, out := left[d.Baseline]
			if out != (e.Verdict != RepairedNow) {
				t.Fatalf("%s is left out for %q, and explained as %s", d.Baseline, l.Message, e.String())
			}
			if out && !l.Until.IsZero() && e.Verdict == RepairedAt && e.At.Before(l.Until) {
				t.Fatalf("left out until %s, explained as %s", l.Until, e.String())
			}
		}
	})
}

// "2 taken, wants at most 1 target" was told as passed: the drift's own plan was counted.
func TestABlastRadiusThatIsTakenIsNotToldAsPassed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*situation)
		want   Gate
	}{
		"nothing is taken": {func(*situation) {}, Gate{Name: gateBlastRadius, State: Open, Value: "0 of 1 target taken"}},
		"another target has the place": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "deployments.apps.other")}
		}, Gate{
			Name: gateBlastRadius, State: Closed, Value: "1 of 1 target taken", Needs: NeedsEvent,
			Message: "one operation has at most 1 target, and it is taken",
		}},
		"another target has the place, and the drift is held back for another reason": {func(s *situation) {
			s.in.Policy.Spec.Mode = v1alpha1.PolicyModeHalted
			s.drift.Managed = false
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "deployments.apps.other")}
		}, Gate{
			Name: gateBlastRadius, State: Closed, Value: "1 of 1 target taken", Needs: NeedsEvent,
			Message: "one operation has at most 1 target, and it is taken",
		}},
		"its own plan has the place": {func(s *situation) {
			s.in.UnderWay = []v1alpha1.RemediationPlan{planIn("shop", "deployments.apps.web")}
		}, Gate{Name: gateBlastRadius, State: Open, Value: "its plan has a place"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fine()
			s.in.Policy.Spec.Safety.MaxTargets = 1
			tc.change(s)
			for _, g := range Of(&s.in, s.drift, s.around).Gates {
				if g.Name == gateBlastRadius {
					if diff := cmp.Diff(tc.want, g); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}
