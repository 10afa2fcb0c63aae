// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// policy is the sample policy that ships with Plumbline.
func policy() Policy {
	return Policy{
		PlanPolicy: v1alpha1.PlanPolicy{Name: "production-auto-remediation", UID: "policy-uid", Generation: 3, Digest: "sha256:policy"},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: "production", Mode: v1alpha1.PolicyModeActive, RequestedBy: "platform@example.com",
			Trigger: v1alpha1.TriggerAgeThreshold, MinimumSeverity: v1alpha1.SeverityHigh,
			MinimumDriftAge: duration(15 * time.Minute), MaximumDriftAge: duration(24 * time.Hour),
			Action: v1alpha1.ActionReconcile, Strategy: v1alpha1.StrategyRolling,
		},
	}
}

// drift is one that the sample policy puts back.
func drift(name string) Drift {
	return Drift{
		Namespace: "shop", Baseline: "deployments.apps." + name,
		Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		UID:    "uid-" + name, DriftedHash: "pl1:drifted-" + name, State: v1alpha1.StateDrifted,
		Findings: []v1alpha1.Finding{{
			Path: "/spec/template/spec/containers/[name=app]/image", Operation: v1alpha1.OperationChanged,
			Type: v1alpha1.DriftImage, Class: v1alpha1.ClassImageVersion,
			Actor: v1alpha1.Actor{User: "alice", Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceWriterStamp},
		}},
		Severity:   v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 65, First: v1alpha1.SeverityHigh, Urgency: v1alpha1.UrgencyNormal},
		FirstSeen:  epoch.Add(-20 * time.Minute),
		Authorized: &Repair{Revision: name + "-4", RevisionHash: "pl1:good-" + name, DesiredHash: "pl1:good-" + name},
		Component:  name, Managed: true, Attributed: true,
	}
}

func input(drifts ...Drift) *Input {
	return &Input{
		Policy: policy(), Drifts: drifts, Scope: Scope{Selected: 40, Healthy: 30},
		Opening: Opening{Open: true}, InitiatedBy: InitiatedByItself, Now: epoch,
	}
}

func TestWhatIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		drift  func(*Drift)
		policy func(*v1alpha1.RemediationPolicySpec)
		scope  *Scope
		opens  time.Duration // until the schedule opens; zero while it is open
		under  []v1alpha1.RemediationPlan
		want   Reason
		until  time.Time
	}{
		"what the policy is made for is put back": {},
		"what a guard leaves unmanaged":           {drift: func(d *Drift) { d.Managed = false }, want: ReasonUnmanaged},
		"what a suspended guard guards":           {drift: func(d *Drift) { d.Suspended = true }, want: ReasonSuspended},
		"what is of a kind that is never written": {drift: func(d *Drift) { d.Forbidden = true }, want: ReasonForbiddenKind},
		"what is being deleted":                   {drift: func(d *Drift) { d.Terminating = true }, want: ReasonTerminating},
		// A watch that was behind showed an object that was deleted since, and no event told of its end: the drift
		// of the object that was made again was left alone.
		"another object that is being deleted":          {drift: func(d *Drift) { d.Terminating, d.State = true, v1alpha1.StateUnknown }, want: ReasonUnknown},
		"what could not be read":                        {drift: func(d *Drift) { d.State = v1alpha1.StateUnknown }, want: ReasonUnknown},
		"a state that nobody knows":                     {drift: func(d *Drift) { d.State = "Odd" }, want: ReasonUnknown},
		"what was never authorized":                     {drift: func(d *Drift) { d.Authorized = nil }, want: ReasonNothingAuthorized},
		"what writers fight over":                       {drift: func(d *Drift) { d.Contended = true }, want: ReasonContended},
		"what a rollout measures":                       {drift: func(d *Drift) { d.Rollout = "run 3 of ABRelease web" }, want: ReasonRolloutUnderWay},
		"what drifts with too many others":              {drift: func(d *Drift) { d.Frozen = "ClusterSpecGuard/shop" }, want: ReasonMassDrift},
		"what a plan holds":                             {drift: func(d *Drift) { d.Claim = "other" }, want: ReasonUnderWay},
		"what a plan of the policy has":                 {under: []v1alpha1.RemediationPlan{planOf("shop", "deployments.apps.web")}, want: ReasonUnderWay},
		"what an assessment measures":                   {drift: func(d *Drift) { d.MeasuredBy, d.MeasuredUntil = "nightly-1-0", epoch.Add(time.Minute) }, want: ReasonMeasured, until: epoch.Add(time.Minute)},
		"what an assessment measured until now":         {drift: func(d *Drift) { d.MeasuredBy, d.MeasuredUntil = "nightly-1-0", epoch }},
		"the same name in another namespace is another": {under: []v1alpha1.RemediationPlan{planOf("other", "deployments.apps.web")}},
		"what matters too little":                       {drift: func(d *Drift) { d.Severity.Level = v1alpha1.SeverityMedium }, want: ReasonBelowSeverity},
		"a severity that nobody knows":                  {drift: func(d *Drift) { d.Severity.Level = "Dire" }, want: ReasonBelowSeverity},
		"what matters no more than at first":            {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerSeverityEscalation }, want: ReasonNotEscalated},
		"what got worse is put back": {
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerSeverityEscalation },
			drift:  func(d *Drift) { d.Severity.First = v1alpha1.SeverityMedium },
		},
		// A floor of production has the level at High from the first minute.
		"what got worse under a floor is put back": {
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerSeverityEscalation },
			drift:  func(d *Drift) { d.Severity.Score, d.Severity.FirstScore = 70, new(int32(69)) },
		},
		"what got older in its band": {
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerSeverityEscalation },
			drift:  func(d *Drift) { d.Severity.Score, d.Severity.FirstScore = 69, new(int32(45)) },
			want:   ReasonNotEscalated,
		},
		"what is too young": {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-14 * time.Minute) }, want: ReasonTooYoung, until: epoch.Add(time.Minute)},
		"what was never seen first may be young": {
			drift: func(d *Drift) { d.FirstSeen = time.Time{} }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.MaximumDriftAge = nil }, want: ReasonTooYoung,
		},
		"what was never seen first is old enough for no age": {
			drift: func(d *Drift) { d.FirstSeen = time.Time{} }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.MinimumDriftAge, p.MaximumDriftAge = duration(0), nil },
		},
		"what was never seen first may be too old": {
			drift: func(d *Drift) { d.FirstSeen = time.Time{} }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.MinimumDriftAge = nil }, want: ReasonTooOld,
		},
		"what is just old enough is put back":  {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-15 * time.Minute) }},
		"what is just not too old is put back": {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-24 * time.Hour) }},
		"what is too old":                      {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-24*time.Hour - time.Second) }, want: ReasonTooOld},
		"what became too old while a person was awaited": {
			drift:  func(d *Drift) { d.FirstSeen = epoch.Add(-24*time.Hour - time.Second) },
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerManual }, want: ReasonTooOld,
		},
		// D7 of the review of remediation: a plan was made on Friday for Monday's window, in
		// which its drift was older than the policy's maximum.
		"what will be too old when the schedule opens": {opens: 24 * time.Hour, want: ReasonTooOld},
		"what will be just not too old then":           {opens: 23*time.Hour + 30*time.Minute},
		"what is urgent waits for no schedule": {opens: 24 * time.Hour, drift: func(d *Drift) { d.Severity.Urgency = v1alpha1.UrgencyImmediate }, policy: func(p *v1alpha1.RemediationPolicySpec) {
			p.Schedule.Urgent = v1alpha1.Allowed
		}},
		"what waits for a person waits for no schedule": {opens: 24 * time.Hour, policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerManual }},
		"what is from the future is young":              {drift: func(d *Drift) { d.FirstSeen = epoch.Add(time.Hour) }, want: ReasonTooYoung, until: epoch.Add(75 * time.Minute)},
		"what a plan has done already":                  {drift: func(d *Drift) { d.DoneBy = "earlier" }, want: ReasonDone},
		"what a person would not have put back":         {drift: func(d *Drift) { d.CanceledBy = "bob" }, want: ReasonCanceled},
		"what three plans did not put back":             {drift: func(d *Drift) { d.Attempts = 3 }, want: ReasonAttempts},
		"what two did not is tried again":               {drift: func(d *Drift) { d.Attempts = 2 }},
		"what three repairs did not keep in effect": {
			drift: func(d *Drift) {
				d.Chain = effect.Chain{Rule: effect.ChainRegressions, Repairs: make([]effect.Repair, 3), Until: epoch.Add(3 * time.Hour)}
			}, want: ReasonChain, until: epoch.Add(3 * time.Hour),
		},
		"what earlier repairs came to is not known": {drift: func(d *Drift) { d.Chain.Rule = effect.ChainUnknown }, want: ReasonChain},
		"what nobody knows the writer of":           {drift: func(d *Drift) { d.Attributed = false }, want: ReasonUnattributed},
		"unless the policy says so":                 {drift: func(d *Drift) { d.Attributed = false }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.Exceptions.Unattributed = v1alpha1.Allowed }},
		"what a GitOps tool owns":                   {drift: func(d *Drift) { d.GitOps = "Argo CD" }, want: ReasonGitOps},
		"unless the policy says so about GitOps":    {drift: func(d *Drift) { d.GitOps = "Flux" }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.Exceptions.GitOps = v1alpha1.Allowed }},
		"what a trusted writer is busy with": {
			drift: func(d *Drift) { d.ActiveWriter, d.ActiveUntil = "ci", epoch.Add(time.Minute) }, want: ReasonActiveWriter, until: epoch.Add(time.Minute),
		},
		"unless the policy says so about writers":  {drift: func(d *Drift) { d.ActiveWriter = "ci" }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.Exceptions.ActiveWriter = v1alpha1.Allowed }},
		"what is gone and was imported":            {drift: func(d *Drift) { d.State, d.Recreation.Reason = v1alpha1.StateMissing, "Imported" }, want: ReasonRecreation},
		"what is gone, if the policy does not say": {drift: func(d *Drift) { d.State, d.Recreation.Allowed = v1alpha1.StateMissing, true }, want: ReasonRecreation},
		"what is gone is made again if it says so": {drift: func(d *Drift) { d.State, d.Recreation.Allowed = v1alpha1.StateMissing, true }, policy: func(p *v1alpha1.RemediationPolicySpec) { p.Exceptions.Recreate = v1alpha1.Allowed }},
		"a rollback to where it is already": {
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionRollback },
			drift: func(d *Drift) {
				d.Ready = &Repair{Revision: "web-3", RevisionHash: d.DriftedHash, DesiredHash: d.DriftedHash}
			},
			want: ReasonNotApplicable,
		},
		"a rollback to nothing that was ever ready": {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionRollback }, want: ReasonNeverReady},
		"a rollback to what was ready":              {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionRollback }, drift: func(d *Drift) { d.Ready = &Repair{"web-2", "pl1:two", "pl1:two"} }},
		"a scale where the number did not change":   {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionScale }, want: ReasonNotApplicable},
		"a scale where it did":                      {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionScale }, drift: func(d *Drift) { d.Scaled = &Repair{"web-4", "pl1:good-web", "pl1:scaled"} }},
		"a restart":                                 {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionRestart }},
		"an action that nobody knows":               {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Action = "Pray" }, want: ReasonNotApplicable},
		"too few of the others are healthy":         {scope: &Scope{Selected: 40, Healthy: 74, Unhealthy: 26}, want: ReasonUnhealthy},
		"one of a thousand others too few is":       {scope: &Scope{Selected: 40, Healthy: 749, Unhealthy: 251}, want: ReasonUnhealthy},
		"just enough of the others are healthy":     {scope: &Scope{Selected: 40, Healthy: 75, Unhealthy: 25}},
		"nothing is known of the others":            {scope: &Scope{Selected: 1}},
		"one operation is as large as it may be":    {scope: &Scope{Selected: 7, Healthy: 7}, under: []v1alpha1.RemediationPlan{planOf("other", "deployments.apps.db")}, want: ReasonBlastRadius},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			if test.drift != nil {
				test.drift(&d)
			}
			in := input(d)
			if test.policy != nil {
				test.policy(&in.Policy.Spec)
			}
			if test.scope != nil {
				in.Scope = *test.scope
			}
			if test.opens > 0 {
				in.Opening = Opening{Next: in.Now.Add(test.opens)}
			}
			in.UnderWay = test.under
			out := Make(in)
			var got LeftOut
			if len(out.LeftOut) > 0 {
				got = out.LeftOut[0]
			}
			if got.Reason != test.want || !got.Until.Equal(test.until) || !out.NextLook.Equal(test.until) {
				t.Errorf("left out for %q until %s (%s), look again at %s; want %q until %s", got.Reason, got.Until, got.Message, out.NextLook, test.want, test.until)
			}
			if (len(out.Plans) == 1) != (test.want == "") {
				t.Errorf("%d plans", len(out.Plans))
			}
			if test.want != "" && got.Message == "" {
				t.Error("the reason has no words")
			}
		})
	}
}

func planOf(namespace string, baselines ...string) v1alpha1.RemediationPlan {
	p := v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "under-way"}}
	for _, b := range baselines {
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, v1alpha1.PlanTarget{BaselineName: b})
	}
	return p
}

func TestHowManyOneOperationMayHave(t *testing.T) {
	for name, test := range map[string]struct {
		selected, want int
		percent, most  int32
	}{
		"of one object the one":              {selected: 1, want: 1},
		"of three objects still one":         {selected: 3, want: 1},
		"of four objects one":                {selected: 4, want: 1},
		"of eight objects two":               {selected: 8, want: 2},
		"of eleven objects two":              {selected: 11, want: 2},
		"of forty objects ten":               {selected: 40, want: 10},
		"of ten thousand objects ten":        {selected: 10_000, want: 10},
		"of none one, which is none":         {selected: 0, want: 1},
		"of twenty-seven objects six":        {selected: 27, want: 6},
		"one of a hundred if it says so":     {selected: 200, percent: 1, want: 2},
		"one at most if it says so":          {selected: 100, most: 1, want: 1},
		"fewer if the policy says so":        {selected: 100, most: 3, want: 3},
		"a smaller share if it says so":      {selected: 100, percent: 5, want: 5},
		"never more, whatever it says":       {selected: 100, percent: 100, most: 10_000, want: 10},
		"what makes no sense is the default": {selected: 100, percent: -5, most: -1, want: 10},
	} {
		t.Run(name, func(t *testing.T) {
			safety := &v1alpha1.RemediationSafety{MaxTargetPercent: test.percent, MaxTargets: test.most}
			if got := Allowed(safety, test.selected); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheOrderOfDrift(t *testing.T) {
	named := func(name string, change func(*Drift)) Drift {
		d := drift(name)
		if change != nil {
			change(&d)
		}
		return d
	}
	in := input(
		named("z-same", nil),
		named("a-same", nil),
		named("frontend", nil),
		named("backend", nil),
		named("older", func(d *Drift) { d.FirstSeen = epoch.Add(-time.Hour) }),
		named("scored", func(d *Drift) { d.Severity.Score = 77 }),
		named("critical", func(d *Drift) { d.Severity.Level, d.Severity.Score = v1alpha1.SeverityCritical, 60 }),
	)
	in.Dependencies = []v1alpha1.ComponentDependencies{
		{Component: "frontend", DependsOn: []string{"backend"}},
		{Component: "backend", DependsOn: []string{"database"}},
	}
	var got []string
	for _, target := range Make(in).Plans[0].Targets {
		got = append(got, target.Name)
	}
	want := []string{"critical", "scored", "older", "a-same", "z-same", "backend", "frontend"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrategies(t *testing.T) {
	for name, test := range map[string]struct {
		strategy v1alpha1.RemediationStrategy
		n        int
		want     [][]int32
	}{
		"all at once is one batch":             {v1alpha1.StrategyAllAtOnce, 3, [][]int32{{0, 1, 2}}},
		"rolling is one after the other":       {v1alpha1.StrategyRolling, 3, [][]int32{{0}, {1}, {2}}},
		"a staged plan begins with one":        {v1alpha1.StrategyStaged, 3, [][]int32{{0}, {1, 2}}},
		"a staged plan of one is one batch":    {v1alpha1.StrategyStaged, 1, [][]int32{{0}}},
		"what nobody knows is done one by one": {"Random", 2, [][]int32{{0}, {1}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := policy().Spec
			spec.Strategy, spec.Health.DelayAfter = test.strategy, duration(time.Minute)
			var got [][]int32
			all := batches(&spec, test.n)
			for i, b := range all {
				got = append(got, b.Steps)
				if last := i == len(all)-1; int(b.Order) != i || (b.DelayAfter == nil) != last || b.RequiresHealthCheck != v1alpha1.Enabled {
					t.Errorf("batch %d is %+v", i, b)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsUrgentDoesNotWaitWhereThePolicySaysSo(t *testing.T) {
	urgent, calm := drift("urgent"), drift("calm")
	urgent.Severity.Urgency = v1alpha1.UrgencyImmediate
	in := input(urgent, calm)
	in.Opening = Opening{Next: epoch.Add(16 * time.Hour), Why: "the window is closed"}
	if plans := Make(in).Plans; len(plans) != 1 || plans[0].ScheduledTime == nil || !plans[0].ScheduledTime.Time.Equal(in.Opening.Next) {
		t.Errorf("without the permission: %+v", plans)
	}
	in.Policy.Spec.Schedule.Urgent = v1alpha1.Allowed
	plans := Make(in).Plans
	if len(plans) != 2 || plans[0].ScheduledTime != nil && plans[1].ScheduledTime != nil {
		t.Fatalf("with it: %+v", plans)
	}
	for _, p := range plans {
		if (p.ScheduledTime == nil) != (p.Targets[0].Name == "urgent") {
			t.Errorf("plan of %s is scheduled for %v", p.Targets[0].Name, p.ScheduledTime)
		}
	}
}

func TestAPolicyThatOnlyNotifiesMakesNoPlan(t *testing.T) {
	in := input(drift("web"), drift("db"))
	in.Policy.Spec.Action = v1alpha1.ActionNotifyOnly
	if out := Make(in); len(out.Plans) != 0 || len(out.Notify) != 2 || out.Eligible != 2 {
		t.Errorf("got %+v", out)
	}
}

func TestAPlanIsTheSameWhoeverMakesItAgain(t *testing.T) {
	in := input(drift("web"))
	name := Make(in).Plans[0].Name
	for what, test := range map[string]struct {
		change func(*Input)
		same   bool
	}{
		"a moment later":                  {func(in *Input) { in.Now = in.Now.Add(time.Minute) }, true},
		"with other objects in the scope": {func(in *Input) { in.Scope.Selected = 90 }, true},
		"after another plan":              {func(in *Input) { in.Drifts[0].Ended = []string{"a"} }, false},
		"the same drift once more":        {func(in *Input) { in.Drifts[0].FirstSeen = epoch.Add(-16 * time.Minute) }, false},
		"another drift":                   {func(in *Input) { in.Drifts[0].DriftedHash = "pl1:other" }, false},
		"another policy":                  {func(in *Input) { in.Policy.Digest = "sha256:other" }, false},
		"on somebody's request":           {func(in *Input) { in.InitiatedBy = "bob" }, false},
	} {
		t.Run(what, func(t *testing.T) {
			again := input(drift("web"))
			test.change(again)
			if got := Make(again).Plans[0].Name; (got == name) != test.same {
				t.Errorf("%s and %s", name, got)
			}
		})
	}
}

func TestWithWhoseRightAPlanActs(t *testing.T) {
	in := input(drift("web"))
	if p := Make(in).Plans[0]; p.Requester != "platform@example.com" || p.InitiatedBy != "system:auto" {
		t.Errorf("by itself: %s for %s", p.InitiatedBy, p.Requester)
	}
	in.InitiatedBy = "bob"
	if p := Make(in).Plans[0]; p.Requester != "bob" || p.InitiatedBy != "bob" {
		t.Errorf("asked for: %s for %s", p.InitiatedBy, p.Requester)
	}
	in = input(drift("web"))
	in.Policy.Spec.RequestedBy, in.Policy.Spec.ServiceAccountName = "", "shop/repairs"
	if p := Make(in).Plans[0]; p.Requester != "system:serviceaccount:shop:repairs" || p.RequesterGroups != nil || p.InitiatedBy != "system:auto" {
		t.Errorf("by itself, of a service account: %s for %s in %q", p.InitiatedBy, p.Requester, p.RequesterGroups)
	}
}

func TestNamesOfPlansAreNames(t *testing.T) {
	for _, name := range []string{"p", strings.Repeat("long-", 60), strings.Repeat("x", 39) + "-y", "a.b"} {
		in := input(drift("web"))
		in.Policy.Name = name
		if got := Make(in).Plans[0].Name; len(got) > 63 || strings.Contains(got, "--") || strings.Contains(got, ".-") {
			t.Errorf("%q gives %q", name, got)
		}
	}
}

// The whole of some plans, as they are stored.
func TestGoldenPlans(t *testing.T) {
	missing := drift("gone")
	missing.State, missing.Recreation.Allowed, missing.Findings = v1alpha1.StateMissing, true, nil
	young := drift("young")
	young.FirstSeen = epoch.Add(-time.Minute)
	elsewhere := drift("web")
	elsewhere.Namespace = "billing"
	worse := drift("db")
	worse.Severity.Level, worse.Severity.Score = v1alpha1.SeverityCritical, 91
	in := input(drift("web"), missing, young, elsewhere, worse)
	in.Policy.Spec.Exceptions.Recreate = v1alpha1.Allowed
	in.Policy.Spec.Health.DelayAfter = duration(30 * time.Second)
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetIndent("", "  ")
	for _, p := range Make(in).Plans {
		if err := enc.Encode(p); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "testdata/plans.json", got.Bytes())
}

// A policy that only notifies waits for no schedule, and so its drift does not grow too old
// before the schedule opens.
func TestAPolicyThatOnlyNotifiesTellsOutsideOfItsSchedule(t *testing.T) {
	in := input(drift("web"))
	in.Policy.Spec.Action, in.Opening = v1alpha1.ActionNotifyOnly, Opening{Next: in.Now.Add(48 * time.Hour)}
	if out := Make(in); len(out.Notify) != 1 || len(out.LeftOut) != 0 {
		t.Errorf("it tells of %d drifts and leaves out %v", len(out.Notify), out.LeftOut)
	}
}
