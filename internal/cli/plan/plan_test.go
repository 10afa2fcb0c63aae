// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// allPlans has a plan in every phase, and some that wait for a person.
func allPlans() []client.Object {
	other := clitest.PlanOf("elsewhere", clitest.InPhase(v1alpha1.PlanRunning), func(p *v1alpha1.RemediationPlan) {
		p.Namespace, p.Spec.Plan.Policy.Name = "other", "staging"
	})
	younger := func(p *v1alpha1.RemediationPlan) { p.CreationTimestamp = clitest.Before(time.Minute) }
	return clitest.ObjectsOf(
		other,
		clitest.PlanOf("untaken", younger),
		clitest.PlanOf("created", clitest.InPhase(v1alpha1.PlanCreated)),
		clitest.PlanOf("scheduled", clitest.InPhase(v1alpha1.PlanScheduled), func(p *v1alpha1.RemediationPlan) {
			p.Spec.Plan.ScheduledTime = new(clitest.Before(-time.Hour))
			p.Status.DeferralReason, p.Status.ResumeTime = "it is scheduled", new(clitest.Before(-time.Hour))
		}),
		clitest.PlanOf("deferred", clitest.Deferred("the maintenance window is closed", new(clitest.Before(-10*time.Hour)))),
		clitest.PlanOf("limited", clitest.Deferred("MaxPerHour: 10 of 10 in the last hour; and more words than a table without -o wide has room for", nil)),
		clitest.PlanOf("running", clitest.InPhase(v1alpha1.PlanRunning)),
		clitest.PlanOf("pausing", clitest.InPhase(v1alpha1.PlanRunning), clitest.Asked(v1alpha1.PlanPause, "bob", "")),
		clitest.PlanOf("paused", clitest.InPhase(v1alpha1.PlanPaused), clitest.Asked(v1alpha1.PlanPause, "bob", "INC-9")),
		clitest.PlanOf("sealing", clitest.Eventful, clitest.Asked(v1alpha1.PlanCancel, "carol", "")),
		clitest.PlanOf("succeeded", clitest.InPhase(v1alpha1.PlanSucceeded)),
		clitest.PlanOf("partial", clitest.InPhase(v1alpha1.PlanPartialSuccess)),
		clitest.PlanOf("failed", clitest.InPhase(v1alpha1.PlanFailed), younger),
		clitest.PlanOf("canceled", clitest.InPhase(v1alpha1.PlanCanceled)),
		clitest.PlanOf("superseded", clitest.InPhase(v1alpha1.PlanSuperseded)),
	)
}

func TestPlan_Golden(t *testing.T) {
	cases := map[string][]string{
		"list":       {"plan", "list"},
		"list-all":   {"plan", "list", "-A", "-o", "wide"},
		"list-bare":  {"plan", "list", "--no-headers", "--phase", "Deferred,Running"},
		"list-name":  {"plan", "list", "-o", "name", "--policy", "production", "--phase", "Paused"},
		"list-other": {"plan", "list", "-A", "--policy", "staging"},
		"list-yaml":  {"plan", "list", "--phase", "Paused", "-o", "yaml"},
		"show":       {"plan", "show", "sealing"},
		"show-wide":  {"plan", "show", "sealing", "-o", "wide"},
		"show-new":   {"plan", "show", "untaken"},
		"show-ended": {"plan", "show", "failed"},
		"show-json":  {"plan", "show", "paused", "-o", "json"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: allPlans()}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "plan/"+name+".txt"), got.Stdout)
		})
	}
}

// A table without -o wide had the first sixty characters of a reason, and three columns of zeros.
func TestPlanList_CutsNoReasonAndCountsNoZeros(t *testing.T) {
	const reason = "MaxPerHour: 10 of 10 in the last hour; and more words than a table without -o wide has room for"
	limited := clitest.PlanOf("limited", clitest.Deferred(reason, new(clitest.Before(-12*time.Minute))), func(p *v1alpha1.RemediationPlan) {
		p.Status.Counts.Succeeded, p.Status.Counts.Failed = 1, 1
	})
	f := clitest.Cluster{Objects: clitest.ObjectsOf(limited)}
	got := f.Run(t, verbs, "", "plan", "list", "--no-headers")
	if want := "limited   production   Deferred   1/2 (1 failed)   MaxPerHour (in 12m)         10m\n"; got.Stdout != want {
		t.Errorf("got %q, want %q", got.Stdout, want)
	}
	if wide := f.Run(t, verbs, "", "plan", "list", "-o", "wide"); !strings.Contains(wide.Stdout, reason+" (until ") {
		t.Errorf("the wide table cuts the reason: %q", wide.Stdout)
	}
}

func TestPlanShow_NamesThePersonWhoAskedForThePlan(t *testing.T) {
	plan := clitest.PlanOf("p", clitest.InPhase(v1alpha1.PlanRunning), func(p *v1alpha1.RemediationPlan) {
		p.Spec.Plan.InitiatedBy, p.Spec.Plan.Requester = "oscar", "oscar"
		p.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "remediate-x", UID: "u"}
	})
	got := clitest.Cluster{Objects: clitest.ObjectsOf(plan)}.Run(t, verbs, "", "plan", "show", "p")
	if want := "oscar, acting with the permissions of oscar and of the user that the policy acts as, by request remediate-x\n"; !strings.Contains(got.Stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestPlanShow_NamesTheStandbyOfAStep(t *testing.T) {
	plan := clitest.PlanOf("p", clitest.InPhase(v1alpha1.PlanRunning), func(p *v1alpha1.RemediationPlan) {
		p.Spec.Plan.Strategy = v1alpha1.StrategyBlueGreen
		p.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepVerified, Standby: &v1alpha1.StepStandby{
			Name: "standby-1", ServiceName: "front", Phase: v1alpha1.StandbyReturning, PhaseTime: clitest.Before(2 * time.Minute),
		}}}
	})
	got := clitest.Cluster{Objects: clitest.ObjectsOf(plan)}.Run(t, verbs, "", "plan", "show", "p")
	if want := "standby standby-1, of Service front: Returning, since 2m\n"; !strings.Contains(got.Stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestPlan_Mistakes(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string // in standard error
	}{
		"no plan is named":                   {[]string{"plan", "show"}, "error: name one plan: \"kubectl plumbline plan list\" lists them\nSee 'kubectl plumbline plan show -h'"},
		"two are named":                      {[]string{"plan", "show", "a", "b"}, "error: name one plan"},
		"one that is not there":              {[]string{"plan", "show", "nope"}, `Error from server (NotFound): remediationplans.plumbline.dev "nope" not found`},
		"a phase that is none":               {[]string{"plan", "list", "--phase", "Wobbly"}, `there is no phase "Wobbly", want one of Running,`},
		"a selector that is none":            {[]string{"plan", "list", "-l", "="}, `unable to parse selector "="`},
		"an output format that is none":      {[]string{"plan", "list", "-o", "csv"}, `output format "csv"`},
		"a verb that is none":                {[]string{"plan", "pauze"}, "unknown command \"pauze\" for \"kubectl plumbline plan\"\n\nDid you mean this?\n\tpause\n"},
		"nothing to pause":                   {[]string{"plan", "pause"}, "error: name at least one plan"},
		"a reason longer than the API takes": {[]string{"plan", "pause", "a", "--reason", strings.Repeat("ö", 257)}, "--reason has 257 characters, more than 256"},
		"a dry run that is none":             {[]string{"plan", "pause", "a", "--dry-run=maybe"}, "invalid dry-run value (maybe)"},
		"time does not run backwards":        {[]string{"plan", "pause", "a", "--timeout=-1s"}, "--timeout must be greater than 0s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{}.Run(t, verbs, "", tc.args...)
			if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("%q gave %+v, want %q", tc.args, got, tc.want)
			}
		})
	}
	none := clitest.Cluster{}.Run(t, verbs, "", "plan", "list")
	if none.Code != 0 || none.Stdout != "" || none.Stderr != "No plans found in shop namespace.\n" {
		t.Errorf("an empty namespace gave %+v", none)
	}
}

func TestPlan_CompletesNamesWithTheirPhase(t *testing.T) {
	got := clitest.Cluster{Objects: allPlans()}.Run(t, verbs, "", "__complete", "plan", "pause", "pau")
	if !strings.HasPrefix(got.Stdout, "paused\tPaused\npausing\tRunning\n:") {
		t.Errorf("got %q", got.Stdout)
	}
	got = clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PolicyOf("production", clitest.ActiveBy("bob")))}.Run(t, verbs, "", "__complete", "plan", "list", "--policy", "p")
	if !strings.HasPrefix(got.Stdout, "production\tActive\n:") {
		t.Errorf("got %q", got.Stdout)
	}
}
