// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// asks makes an input that of a request of bob for these names.
func asks(in *Input, names ...string) *Input {
	in.InitiatedBy, in.InitiatedByGroups = "bob", []string{"sre"}
	in.Request = &Request{Namespace: "shop", Name: "ask", UID: "uid-ask"}
	for _, name := range names {
		in.Request.Targets = append(in.Request.Targets, Chosen{Baseline: "deployments.apps." + name, DriftedHash: "pl1:drifted-" + name, Standing: StandingDrifted})
	}
	return in
}

func TestWhatAPersonAsksForIsPutBack(t *testing.T) {
	rollsBack := func(p *v1alpha1.RemediationPolicySpec) { p.Action = v1alpha1.ActionRollback }
	ready := &Repair{"web-3", "pl1:three", "pl1:three"}
	older := &Repair{"web-1", "pl1:one", "pl1:one"}
	tests := map[string]struct {
		drift  func(*Drift)
		policy func(*v1alpha1.RemediationPolicySpec)
		chosen func(*Chosen)
		scope  *Scope
		shut   bool
		under  []v1alpha1.RemediationPlan
		want   Reason
		says   string
		hash   string // that the target is to have, if it is not the authorized one
	}{
		"a drift like any other":                 {},
		"a drift that is too old for the policy": {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-48 * time.Hour) }},
		"a drift that is too young for it":       {drift: func(d *Drift) { d.FirstSeen = epoch.Add(-time.Minute) }},
		"a drift that matters too little for it": {drift: func(d *Drift) { d.Severity.Level = v1alpha1.SeverityInfo }},
		"a drift that got no worse": {
			policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerSeverityEscalation },
		},
		"a drift outside the schedule":            {shut: true},
		"a drift of a policy that waits for hand": {policy: func(p *v1alpha1.RemediationPolicySpec) { p.Trigger = v1alpha1.TriggerManual }},
		"a drift that three plans left":           {drift: func(d *Drift) { d.Attempts = MaxAttempts }},
		"a drift whose plan was canceled":         {drift: func(d *Drift) { d.CanceledBy = "alice" }},
		"a state that a person asked for before":  {drift: func(d *Drift) { d.ChosenBy = "alice" }},
		"a rollback to the last ready state":      {policy: rollsBack, drift: func(d *Drift) { d.Ready = ready }, hash: "pl1:three"},
		"a rollback to a chosen state": {
			policy: rollsBack, drift: func(d *Drift) { d.Ready, d.To = ready, older }, chosen: func(c *Chosen) { c.Revision = "web-1" }, hash: "pl1:one",
		},
		"a rollback to a chosen state where none was ready": {
			policy: rollsBack, drift: func(d *Drift) { d.To = older }, chosen: func(c *Chosen) { c.Revision = "web-1" }, hash: "pl1:one",
		},

		"what a guard leaves unmanaged":        {drift: func(d *Drift) { d.Managed = false }, want: ReasonUnmanaged},
		"what a suspended guard guards":        {drift: func(d *Drift) { d.Suspended = true }, want: ReasonSuspended},
		"what is being deleted":                {drift: func(d *Drift) { d.Terminating = true }, want: ReasonTerminating},
		"what is of a kind that is not put":    {drift: func(d *Drift) { d.Forbidden = true }, want: ReasonForbiddenKind},
		"what could not be read":               {drift: func(d *Drift) { d.State = v1alpha1.StateUnknown }, want: ReasonUnknown},
		"what was never authorized":            {drift: func(d *Drift) { d.Authorized = nil }, want: ReasonNothingAuthorized},
		"what somebody has accepted":           {drift: func(d *Drift) { d.AcceptedBy = "alice" }, want: ReasonAccepted},
		"what writers fight over":              {drift: func(d *Drift) { d.Contended = true }, want: ReasonContended},
		"what a rollout measures":              {drift: func(d *Drift) { d.Rollout = "run 3 of ABRelease web" }, want: ReasonRolloutUnderWay},
		"what is part of a mass drift":         {drift: func(d *Drift) { d.Frozen = "SpecGuard/x" }, want: ReasonMassDrift},
		"what an assessment measures":          {drift: func(d *Drift) { d.MeasuredBy, d.MeasuredUntil = "nightly-1-0", epoch.Add(time.Minute) }, want: ReasonMeasured},
		"what a plan holds":                    {drift: func(d *Drift) { d.Claim = "other" }, want: ReasonUnderWay},
		"what a plan has done":                 {drift: func(d *Drift) { d.DoneBy = "other" }, want: ReasonDone},
		"what a plan failed for a moment ago":  {drift: func(d *Drift) { d.RetryAt = epoch.Add(time.Minute) }, want: ReasonBackoff},
		"what an unknown writer changed":       {drift: func(d *Drift) { d.Attributed = false }, want: ReasonUnattributed},
		"what a GitOps tool owns":              {drift: func(d *Drift) { d.GitOps = "Flux" }, want: ReasonGitOps},
		"what a trusted writer is busy with":   {drift: func(d *Drift) { d.ActiveWriter = "ci" }, want: ReasonActiveWriter},
		"what is gone":                         {drift: func(d *Drift) { d.State, d.Recreation.Allowed = v1alpha1.StateMissing, true }, want: ReasonRecreation},
		"what bob or the author may not write": {drift: func(d *Drift) { d.Denied = "no right" }, want: ReasonNotAllowed},
		"what is beside too few healthy":       {scope: &Scope{Selected: 40, Healthy: 1, Unhealthy: 1}, want: ReasonUnhealthy},
		"what is beyond one operation": {
			scope: &Scope{Selected: 4, Healthy: 4}, under: []v1alpha1.RemediationPlan{planOf("other", "deployments.apps.db")}, want: ReasonBlastRadius,
		},
		"what changed since bob looked": {chosen: func(c *Chosen) { c.DriftedHash = "pl1:before" }, want: ReasonChanged, says: "pl1:drifted-web now: look again"},
		"a chosen state of a policy that reconciles": {
			drift: func(d *Drift) { d.To = older }, chosen: func(c *Chosen) { c.Revision = "web-1" }, want: ReasonNotApplicable, says: "spec.action of policy production-auto-remediation is Reconcile",
		},
		"a chosen state that is not kept":       {policy: rollsBack, chosen: func(c *Chosen) { c.Revision = "web-9" }, want: ReasonNoRevision, says: "web-9"},
		"a chosen state that it has":            {policy: rollsBack, chosen: func(c *Chosen) { c.Revision = "web-1" }, drift: func(d *Drift) { d.To = &Repair{"web-1", d.DriftedHash, d.DriftedHash} }, want: ReasonNotApplicable},
		"a rollback where none was ready":       {policy: rollsBack, want: ReasonNeverReady},
		"what no guard guards":                  {chosen: func(c *Chosen) { c.Standing = StandingNotGuarded }, want: ReasonNotGuarded},
		"what belongs to another Environment":   {chosen: func(c *Chosen) { c.Standing, c.Environment = StandingOtherEnvironment, "staging" }, want: ReasonNotSelected, says: `"staging"`},
		"what the policy does not select":       {chosen: func(c *Chosen) { c.Standing = StandingNotSelected }, want: ReasonNotSelected, says: "spec.selector"},
		"what has not drifted":                  {chosen: func(c *Chosen) { c.Standing = StandingNotDrifted }, want: ReasonNotDrifted},
		"what is said to drift, and is no more": {chosen: func(c *Chosen) { c.Baseline = "deployments.apps.other" }, want: ReasonNotGuarded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			if test.drift != nil {
				test.drift(&d)
			}
			in := asks(input(d, drift("db")), "web")
			in.UnderWay = test.under
			if test.policy != nil {
				test.policy(&in.Policy.Spec)
			}
			if test.chosen != nil {
				test.chosen(&in.Request.Targets[0])
			}
			if test.scope != nil {
				in.Scope = *test.scope
			}
			if test.shut {
				in.Opening = Opening{Next: epoch.Add(time.Hour), Why: "closed"}
			}
			out := Make(in)
			if test.want != "" {
				if len(out.Plans) != 0 || len(out.LeftOut) != 1 || out.LeftOut[0].Reason != test.want || !strings.Contains(out.LeftOut[0].Message, test.says) {
					t.Errorf("got %d plans, left out %+v, want %s", len(out.Plans), out.LeftOut, test.want)
				}
				return
			}
			if len(out.Plans) != 1 || len(out.LeftOut) != 0 || len(out.Plans[0].Targets) != 1 {
				t.Fatalf("plans are %+v, left out %+v", out.Plans, out.LeftOut)
			}
			p, hash := &out.Plans[0], test.hash
			if hash == "" {
				hash = "pl1:good-web"
			}
			if got := p.Targets[0]; got.Name != "web" || got.DesiredHash != hash || p.ScheduledTime != nil {
				t.Errorf("the plan is %+v, want %s", p, hash)
			}
		})
	}
}

func TestAPlanThatAPersonAskedForActsInTheNameOfThatPerson(t *testing.T) {
	out := Make(asks(input(drift("web"), drift("db")), "web", "db"))
	if len(out.Plans) != 1 {
		t.Fatalf("plans are %+v", out.Plans)
	}
	p := &out.Plans[0]
	if diff := cmp.Diff(&v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"}, p.Request); diff != "" {
		t.Errorf("its request (-want +got):\n%s", diff)
	}
	if p.InitiatedBy != "bob" || p.Requester != "bob" || !cmp.Equal(p.RequesterGroups, []string{"sre"}) || len(p.Targets) != 2 || len(p.Batches) != 2 {
		t.Errorf("the plan is %+v", p.PlannedRemediation)
	}
	// The same request is answered by the same plan, another one by another.
	if again := Make(asks(input(drift("db"), drift("web")), "web", "db")); again.Plans[0].Name != p.Name {
		t.Errorf("the same request gives %s and %s", p.Name, again.Plans[0].Name)
	}
	another := asks(input(drift("web"), drift("db")), "web", "db")
	another.Request.UID = "uid-another"
	if Make(another).Plans[0].Name == p.Name {
		t.Error("another request has the same plan")
	}
}

func TestAPolicyDoesNotUndoWhatAPersonAskedFor(t *testing.T) {
	d := drift("web")
	d.ChosenBy, d.Ready = "bob", &Repair{"web-3", "pl1:three", "pl1:three"}
	in := input(d)
	in.Policy.Spec.Action = v1alpha1.ActionRollback
	if out := Make(in); len(out.Plans) != 0 || out.LeftOut[0].Reason != ReasonDone || !strings.Contains(out.LeftOut[0].Message, "bob") {
		t.Errorf("plans are %+v, left out %+v", out.Plans, out.LeftOut)
	}
}

func TestOfARequestAllThatTheLimitsAllowIsPlanned(t *testing.T) {
	in := asks(input(drift("web"), drift("db"), drift("cache")), "web", "db", "cache")
	in.Scope = Scope{Selected: 8, Healthy: 5}
	out := Make(in)
	if len(out.Plans) != 1 || len(out.Plans[0].Targets) != 2 {
		t.Fatalf("plans are %+v", out.Plans)
	}
	answer := Answer(&v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, out.LeftOut)
	want := v1alpha1.RemediationRequestStatus{
		Outcome: v1alpha1.RequestPlanned, PlanName: "made",
		LeftOut: []v1alpha1.LeftOut{{BaselineName: "deployments.apps.web", Reason: "BlastRadius", Message: "one operation has at most 2 targets, and they are taken"}},
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got := Answer(nil, out.LeftOut).Outcome; got != v1alpha1.RequestRefused {
		t.Errorf("without a plan the outcome is %s", got)
	}
}

func TestAPolicyThatAnswersNoRequestSaysWhy(t *testing.T) {
	of := func(change func(*v1alpha1.RemediationPolicy)) *v1alpha1.RemediationPolicy {
		p := &v1alpha1.RemediationPolicy{Spec: policy().Spec}
		change(p)
		return p
	}
	tests := map[string]struct {
		policy *v1alpha1.RemediationPolicy
		want   string
	}{
		"an active one answers":     {of(func(*v1alpha1.RemediationPolicy) {}), ""},
		"one that is not there":     {nil, `spec.policyName: there is no RemediationPolicy "production"`},
		"one that is being deleted": {of(func(p *v1alpha1.RemediationPolicy) { p.DeletionTimestamp = &metav1.Time{Time: epoch} }), "spec.policyName: policy production is being deleted"},
		"one that observes":         {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeObserveOnly }), "spec.mode of policy production is ObserveOnly"},
		"one without a mode":        {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = "" }), "spec.mode of policy production is ObserveOnly"},
		"one that is halted":        {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeHalted }), `is Halted, and an active policy alone writes: run "kubectl plumbline policy activate production"`},
		"one of a mode of later":    {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = "Dry" }), "is Dry"},
		"one that only notifies":    {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionNotifyOnly }), "spec.action of policy production is NotifyOnly"},
		"one that waits for hand":   {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Trigger = v1alpha1.TriggerManual }), ""},
		"one outside its schedule":  {of(func(p *v1alpha1.RemediationPolicy) { p.Spec.Schedule.AllowedStart = "02:00" }), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Refusal("production", test.policy); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
