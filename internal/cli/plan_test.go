// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// allPlans has a plan in every phase, and some that wait for a person.
func allPlans() []client.Object {
	other := planOf("elsewhere", inPhase(v1alpha1.PlanRunning), func(p *v1alpha1.RemediationPlan) {
		p.Namespace, p.Spec.Plan.Policy.Name = "other", "staging"
	})
	younger := func(p *v1alpha1.RemediationPlan) { p.CreationTimestamp = before(time.Minute) }
	return objectsOf(
		other,
		planOf("untaken", younger),
		planOf("created", inPhase(v1alpha1.PlanCreated)),
		planOf("scheduled", inPhase(v1alpha1.PlanScheduled), func(p *v1alpha1.RemediationPlan) {
			p.Spec.Plan.ScheduledTime = new(before(-time.Hour))
			p.Status.DeferralReason, p.Status.ResumeTime = "it is scheduled", new(before(-time.Hour))
		}),
		planOf("deferred", deferred("the maintenance window is closed", new(before(-10*time.Hour)))),
		planOf("limited", deferred("MaxPerHour: 10 of 10 in the last hour; and more words than a table without -o wide has room for", nil)),
		planOf("running", inPhase(v1alpha1.PlanRunning)),
		planOf("pausing", inPhase(v1alpha1.PlanRunning), asked(v1alpha1.PlanPause, "bob", "")),
		planOf("paused", inPhase(v1alpha1.PlanPaused), asked(v1alpha1.PlanPause, "bob", "INC-9")),
		planOf("sealing", eventful, asked(v1alpha1.PlanCancel, "carol", "")),
		planOf("succeeded", inPhase(v1alpha1.PlanSucceeded)),
		planOf("partial", inPhase(v1alpha1.PlanPartialSuccess)),
		planOf("failed", inPhase(v1alpha1.PlanFailed), younger),
		planOf("canceled", inPhase(v1alpha1.PlanCanceled)),
		planOf("superseded", inPhase(v1alpha1.PlanSuperseded)),
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
			got := fakeCluster{objects: allPlans()}.run(t, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "plan/"+name+".txt"), got.Stdout)
		})
	}
}

func TestPlanShow_NamesThePersonWhoAskedForThePlan(t *testing.T) {
	plan := planOf("p", inPhase(v1alpha1.PlanRunning), func(p *v1alpha1.RemediationPlan) {
		p.Spec.Plan.InitiatedBy, p.Spec.Plan.Requester = "oscar", "oscar"
		p.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "remediate-x", UID: "u"}
	})
	got := fakeCluster{objects: objectsOf(plan)}.run(t, "", "plan", "show", "p")
	if want := "oscar, acting with the rights of oscar and of the user as whom the policy acts, by request remediate-x\n"; !strings.Contains(got.Stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestPlan_Mistakes(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string // in standard error
	}{
		"no plan is named":                   {[]string{"plan", "show"}, "error: name one plan\nSee 'kubectl plumbline plan show -h'"},
		"two are named":                      {[]string{"plan", "show", "a", "b"}, "error: name one plan"},
		"one that is not there":              {[]string{"plan", "show", "nope"}, `Error from server (NotFound): remediationplans.plumbline.dev "nope" not found`},
		"a phase that is none":               {[]string{"plan", "list", "--phase", "Wobbly"}, `there is no phase "Wobbly", want one of Running,`},
		"a selector that is none":            {[]string{"plan", "list", "-l", "="}, `unable to parse selector "="`},
		"an output format that is none":      {[]string{"plan", "list", "-o", "csv"}, `output format "csv"`},
		"a verb that is none":                {[]string{"plan", "pauze"}, "unknown command \"pauze\" for \"kubectl plumbline plan\"\n\nDid you mean this?\n\tpause\n"},
		"nothing to pause":                   {[]string{"plan", "pause"}, "error: name at least one plan"},
		"a reason longer than the API takes": {[]string{"plan", "pause", "a", "--reason", strings.Repeat("ö", 257)}, "--reason has 257 characters, more than 256"},
		"a dry run that is none":             {[]string{"plan", "pause", "a", "--dry-run=maybe"}, "invalid dry-run value (maybe)"},
		"time does not run backwards":        {[]string{"plan", "pause", "a", "--wait=-1s"}, "--wait must not be negative"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{}.run(t, "", tc.args...)
			if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("%q gave %+v, want %q", tc.args, got, tc.want)
			}
		})
	}
	none := fakeCluster{}.run(t, "", "plan", "list")
	if none.Code != 0 || none.Stdout != "" || none.Stderr != "No plans found in shop namespace.\n" {
		t.Errorf("an empty namespace gave %+v", none)
	}
}

func TestPlan_ShowsWholeHashesWhenAsked(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"ours":               {pl1("a"), "pl1:aaaaaaaaaaaa"},
		"a plain digest":     {"sha256:" + strings.Repeat("b", 64), "bbbbbbbbbbbb"},
		"an absent object":   {"absent", "absent"},
		"a short one":        {"pl1:sha256:abc", "pl1:sha256:abc"},
		"of another version": {"pl9:blake3:" + strings.Repeat("c", 64), "pl9:blake3:" + strings.Repeat("c", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shortHash(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPlan_CompletesNamesWithTheirPhase(t *testing.T) {
	got := fakeCluster{objects: allPlans()}.run(t, "", "__complete", "plan", "pause", "pau")
	if !strings.HasPrefix(got.Stdout, "paused\tPaused\npausing\tRunning\n:") {
		t.Errorf("got %q", got.Stdout)
	}
	got = fakeCluster{objects: objectsOf(policyOf("production", activeBy("bob")))}.run(t, "", "__complete", "plan", "list", "--policy", "p")
	if !strings.HasPrefix(got.Stdout, "production\tActive\n:") {
		t.Errorf("got %q", got.Stdout)
	}
}

func TestUntilWords_TellsTimesThatHavePassed(t *testing.T) {
	a := &app{now: func() time.Time { return testNow }}
	if got := a.untilWords(metav1.NewTime(testNow)); got != "until 2026-03-01T12:00:00Z" {
		t.Errorf("got %q", got)
	}
	if got := a.untilWords(before(-90 * time.Minute)); got != "until 2026-03-01T13:30:00Z, in 90m" {
		t.Errorf("got %q", got)
	}
}
