// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestEachActionHasItsOwnState(t *testing.T) {
	tests := map[string]struct {
		action v1alpha1.RemediationAction
		state  v1alpha1.DriftState
		want   v1alpha1.PlanTarget
	}{
		"Reconcile leads to the authorized state":            {v1alpha1.ActionReconcile, v1alpha1.StateDrifted, v1alpha1.PlanTarget{Action: v1alpha1.ActionReconcile, UID: "uid-web", Revision: "web-4", RevisionHash: "pl1:good-web", DesiredHash: "pl1:good-web"}},
		"Rollback leads to the newest ready state":           {v1alpha1.ActionRollback, v1alpha1.StateDrifted, v1alpha1.PlanTarget{Action: v1alpha1.ActionRollback, UID: "uid-web", Revision: "web-2", RevisionHash: "pl1:two", DesiredHash: "pl1:two"}},
		"Scale leads to the authorized number of replicas":   {v1alpha1.ActionScale, v1alpha1.StateDrifted, v1alpha1.PlanTarget{Action: v1alpha1.ActionScale, UID: "uid-web", Revision: "web-4", RevisionHash: "pl1:good-web", DesiredHash: "pl1:scaled"}},
		"Restart leaves the drift as it is":                  {v1alpha1.ActionRestart, v1alpha1.StateDrifted, v1alpha1.PlanTarget{Action: v1alpha1.ActionRestart, UID: "uid-web", Revision: "web-4", RevisionHash: "pl1:good-web", DesiredHash: "pl1:drifted-web"}},
		"Reconcile makes an object that is gone again":       {v1alpha1.ActionReconcile, v1alpha1.StateMissing, v1alpha1.PlanTarget{Action: v1alpha1.ActionReconcile, Revision: "web-4", RevisionHash: "pl1:good-web", DesiredHash: "pl1:good-web"}},
		"Rollback makes its newest ready state again":        {v1alpha1.ActionRollback, v1alpha1.StateMissing, v1alpha1.PlanTarget{Action: v1alpha1.ActionRollback, Revision: "web-2", RevisionHash: "pl1:two", DesiredHash: "pl1:two"}},
		"Restart never makes an object that is gone again":   {v1alpha1.ActionRestart, v1alpha1.StateMissing, v1alpha1.PlanTarget{}},
		"Scale never makes an object that is gone again":     {v1alpha1.ActionScale, v1alpha1.StateMissing, v1alpha1.PlanTarget{}},
		"Quarantine leaves the drift as it is":               {v1alpha1.ActionQuarantine, v1alpha1.StateDrifted, v1alpha1.PlanTarget{Action: v1alpha1.ActionQuarantine, UID: "uid-web", Revision: "web-4", RevisionHash: "pl1:good-web", DesiredHash: "pl1:drifted-web"}},
		"Quarantine never makes an object that is gone":      {v1alpha1.ActionQuarantine, v1alpha1.StateMissing, v1alpha1.PlanTarget{}},
		"NotifyOnly writes no target":                        {v1alpha1.ActionNotifyOnly, v1alpha1.StateDrifted, v1alpha1.PlanTarget{}},
		"an unknown action writes no target, present or not": {"Pray", v1alpha1.StateMissing, v1alpha1.PlanTarget{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			d.State, d.Recreation.Allowed = test.state, true
			d.Ready, d.Scaled = &Repair{"web-2", "pl1:two", "pl1:two"}, &Repair{"web-4", "pl1:good-web", "pl1:scaled"}
			in := input(d)
			in.Policy.Spec.Action, in.Policy.Spec.Exceptions.Recreate = test.action, v1alpha1.Allowed
			var got v1alpha1.PlanTarget
			for _, p := range Make(in).Plans {
				target := p.Targets[0]
				got = v1alpha1.PlanTarget{Action: target.Action, UID: target.UID, Revision: target.Revision, RevisionHash: target.RevisionHash, DesiredHash: target.DesiredHash}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func finding(path, user string) v1alpha1.Finding {
	return v1alpha1.Finding{Path: path, Type: v1alpha1.DriftImage, Actor: v1alpha1.Actor{User: user}}
}

func TestATargetNamesThePathsAndActorsOfItsDriftWithinTheSchemasBounds(t *testing.T) {
	var many []v1alpha1.Finding
	for i := range 70 {
		many = append(many, finding(fmt.Sprint("/spec/", i), fmt.Sprint("user-", i)))
	}
	type told struct {
		Type          v1alpha1.DriftType
		Paths, Actors string
	}
	tests := map[string]struct {
		findings []v1alpha1.Finding
		want     told
	}{
		"without a finding it has another type of drift": {nil, told{Type: v1alpha1.DriftOther}},
		"the first finding gives the type":               {[]v1alpha1.Finding{finding("/a", "alice")}, told{v1alpha1.DriftImage, "/a", "alice"}},
		"an actor is named once":                         {[]v1alpha1.Finding{finding("/a", "alice"), finding("/b", "bob"), finding("/c", "alice")}, told{v1alpha1.DriftImage, "/a /b /c", "alice bob"}},
		"a finding without a path or an actor adds none": {[]v1alpha1.Finding{finding("", "alice"), finding("/b", "")}, told{v1alpha1.DriftImage, "/b", "alice"}},
		"no more of them than the schema allows": {many, told{
			v1alpha1.DriftImage, strings.Join(pathsOf(many[:64]), " "), "user-0 user-1 user-2 user-3 user-4 user-5 user-6 user-7",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			d.Findings = test.findings
			target := Make(input(d)).Plans[0].Targets[0]
			got := told{target.DriftType, strings.Join(target.Paths, " "), strings.Join(target.Actors, " ")}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func pathsOf(all []v1alpha1.Finding) []string {
	var paths []string
	for _, f := range all {
		paths = append(paths, f.Path)
	}
	return paths
}

func TestAPlanSaysWhyOthersAreLeftOutWithinTheSchemasBounds(t *testing.T) {
	in := input(drift("web"))
	for i := range 70 {
		d := drift(fmt.Sprintf("frozen-%02d", i))
		d.Frozen = strings.Repeat("x", 300)
		in.Drifts = append(in.Drifts, d)
	}
	elsewhere := drift("elsewhere")
	elsewhere.Namespace, elsewhere.Managed = "billing", false
	in.Drifts = append(in.Drifts, elsewhere)
	plan := Make(in).Plans[0]
	if len(plan.LeftOut) != 64 || plan.LeftOutTotal != 70 {
		t.Errorf("the plan tells of %d, and counts %d", len(plan.LeftOut), plan.LeftOutTotal)
	}
	for _, l := range plan.LeftOut {
		if l.Reason != string(ReasonMassDrift) || len(l.Message) == 0 || len(l.Message) > 256 {
			t.Fatalf("left out for %s, in %d bytes", l.Reason, len(l.Message))
		}
	}
}

func TestTheNextLookIsWhenTheFirstObstacleGoesAway(t *testing.T) {
	young := func(name string, minutes int) Drift {
		d := drift(name)
		d.FirstSeen = epoch.Add(-time.Duration(minutes) * time.Minute)
		return d
	}
	unmanaged := drift("unmanaged")
	unmanaged.Managed = false
	tests := map[string]struct {
		drifts []Drift
		want   time.Time
	}{
		"no obstacle goes away by time alone":           {[]Drift{unmanaged, drift("web")}, time.Time{}},
		"one goes away, another does not":               {[]Drift{young("a", 5), unmanaged}, epoch.Add(10 * time.Minute)},
		"the first of two":                              {[]Drift{young("a", 5), young("b", 9)}, epoch.Add(6 * time.Minute)},
		"the first of two, in whatever order they come": {[]Drift{young("b", 9), young("a", 5)}, epoch.Add(6 * time.Minute)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Make(input(test.drifts...)).NextLook; !got.Equal(test.want) {
				t.Errorf("look again at %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhenAPlanEnds(t *testing.T) {
	opens := epoch.Add(5*time.Hour + 300*time.Millisecond)
	tests := map[string]struct {
		trigger v1alpha1.RemediationTrigger
		opening Opening
		want    time.Time
	}{
		"a plan has a day": {v1alpha1.TriggerAgeThreshold, Opening{Open: true}, epoch.Add(24 * time.Hour)},
		"a plan that waits for its window has a day from there": {v1alpha1.TriggerAgeThreshold, Opening{Next: opens}, epoch.Add(29 * time.Hour)},
		"a plan that waits for a person has three days":         {v1alpha1.TriggerManual, Opening{Open: true}, epoch.Add(72 * time.Hour)},
		"and three days from its window on":                     {v1alpha1.TriggerManual, Opening{Next: opens}, epoch.Add(77 * time.Hour)},
		"without a next window a plan has a day from now":       {v1alpha1.TriggerAgeThreshold, Opening{}, epoch.Add(24 * time.Hour)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(drift("web"))
			in.Policy.Spec.Trigger, in.Opening = test.trigger, test.opening
			if got := Make(in).Plans[0].DeadlineTime; !got.Time.Equal(test.want) {
				t.Errorf("the deadline is %s, want %s", got.UTC(), test.want)
			}
		})
	}
}

func TestChecksAskEveryQuestionAlsoAfterTheFirstObstacle(t *testing.T) {
	d := drift("web")
	d.Managed, d.Frozen, d.Attempts = false, "ClusterSpecGuard/shop", 3
	got := map[CheckName]Reason{}
	var names []CheckName
	for _, c := range Checks(input(d), &d) {
		got[c.Name] = c.Reason
		names = append(names, c.Name)
	}
	order := []CheckName{CheckGuard, CheckBrakes, CheckUnderWay, CheckSeverity, CheckAge, CheckAttempts, CheckEffect, CheckExceptions, CheckPresence, CheckApplicability}
	if diff := cmp.Diff(order, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	want := map[CheckName]Reason{
		CheckGuard: ReasonUnmanaged, CheckBrakes: ReasonMassDrift, CheckUnderWay: "", CheckSeverity: "", CheckAge: "",
		CheckAttempts: ReasonAttempts, CheckEffect: "", CheckExceptions: "", CheckPresence: "", CheckApplicability: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("obstacles (-want +got):\n%s", diff)
	}
}

func TestWhichObstaclesAPersonIsToldOf(t *testing.T) {
	escalates := map[Reason]bool{ReasonTooOld: true, ReasonAttempts: true, ReasonChain: true, ReasonTooYoung: false, ReasonCanceled: false, ReasonMassDrift: false, "": false}
	for reason, want := range escalates {
		if got := reason.Escalates(); got != want {
			t.Errorf("%q escalates: %t, want %t", reason, got, want)
		}
	}
}
