// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// assessmentOf is one of a write of web, so long ago, that has ended well; change alters it.
func assessmentOf(name string, ago time.Duration, change ...func(*v1alpha1.EffectivenessAssessment)) *v1alpha1.EffectivenessAssessment {
	minutes := func(n int) metav1.Time { return clitest.Before(ago - time.Duration(n)*time.Minute) }
	x := &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-0", CreationTimestamp: clitest.Before(ago)},
		Spec: v1alpha1.EffectivenessAssessmentSpec{
			Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: name, UID: "uid-" + name}}, Policy: v1alpha1.AssessedPolicy{Name: "production", UID: clitest.PolicyUID},
			CorrelationID: "c-1", RequestedBy: "alice", Action: v1alpha1.AssessedAction(v1alpha1.ActionReconcile),
			Target: v1alpha1.AssessedTarget{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, BaselineName: specguard.BaselineName("deployments", "apps", "web"), UID: "uid-web",
			},
			PreHash: clitest.Pl1("d"), PostHash: clitest.Pl1("a"), Execution: v1alpha1.ExecutionDone, WrittenTime: new(minutes(0)),
			Windows: v1alpha1.AssessmentWindows{
				Stabilization: &metav1.Duration{Duration: 5 * time.Minute}, Validity: &metav1.Duration{Duration: 30 * time.Minute}, AlertCheckDelay: &metav1.Duration{Duration: time.Minute},
			},
		},
		Status: v1alpha1.EffectivenessAssessmentStatus{
			Phase: v1alpha1.AssessmentCompleted, Reason: v1alpha1.AssessedFull, Verdict: v1alpha1.VerdictEffective, Score: new(int32(9_580)), Formula: 1,
			Integrity: v1alpha1.IntegrityUnchanged, CurrentHash: clitest.Pl1("a"), CompletionTime: new(minutes(10)),
			Schedule: &v1alpha1.AssessmentSchedule{PropagatedTime: minutes(0), StabilizedTime: minutes(5), AlertsTime: minutes(6), DeadlineTime: minutes(30)},
			Components: []v1alpha1.AssessedComponent{
				{Name: v1alpha1.ComponentHealth, State: v1alpha1.ComponentAssessed, Score: new(int32(10_000)), Effect: v1alpha1.EffectFor, Message: "3 of 3 ready, no restart, no OOM since the write"},
				{Name: v1alpha1.ComponentAlerts, State: v1alpha1.ComponentAssessed, Score: new(int32(10_000)), Effect: v1alpha1.EffectFor, Message: "HighErrorRate fired from 13:40, gone 14:05:30; alerts do arrive (Watchdog)"},
				{Name: v1alpha1.ComponentMetrics, State: v1alpha1.ComponentAssessed, Score: new(int32(8_318)), Effect: v1alpha1.EffectFor, Message: "errors 4.1 % → 0.30 %, 0.31 % before the drift: back"},
			},
			SideEffects: []string{"no new alert in shop", "cart, which needs web, is ready"},
		},
	}
	for _, c := range change {
		c(x)
	}
	return x
}

func ineffective(x *v1alpha1.EffectivenessAssessment) {
	x.Status.Verdict, x.Status.Score, x.Status.Message = v1alpha1.VerdictIneffective, new(int32(6_080)), "Alerts: HighErrorRate fires"
	x.Spec.DDEM002 = &v1alpha1.DDEM002Hashes{PreHash: "sha256:" + strings.Repeat("d", 64), PostHash: "sha256:" + strings.Repeat("a", 64)}
	x.Status.Components[1].Effect, x.Status.Components[1].Score, x.Status.Components[1].Message = v1alpha1.EffectAgainst, new(int32(0)), "HighErrorRate fires"
	x.Status.SideEffects = nil
}

func invalidated(x *v1alpha1.EffectivenessAssessment) {
	x.Status = v1alpha1.EffectivenessAssessmentStatus{
		Phase: v1alpha1.AssessmentCompleted, Reason: v1alpha1.AssessedSpecDrift, Verdict: v1alpha1.VerdictInvalidated, Score: new(int32(0)), Formula: 1, Integrity: v1alpha1.IntegrityDrifted,
		CurrentHash: clitest.Pl1("d"), CompletionTime: x.Status.CompletionTime, Message: "another writer has changed the target since the write", Schedule: x.Status.Schedule,
	}
}

func underWay(x *v1alpha1.EffectivenessAssessment) {
	s := &x.Status
	s.Phase, s.Reason, s.Verdict, s.Score, s.Formula, s.CompletionTime, s.SideEffects = v1alpha1.AssessmentAssessing, "", "", nil, 0, nil, nil
	s.Components[1] = v1alpha1.AssessedComponent{Name: v1alpha1.ComponentAlerts, State: v1alpha1.ComponentNotConfigured}
	s.Components[2] = v1alpha1.AssessedComponent{Name: v1alpha1.ComponentMetrics, State: v1alpha1.ComponentNotAnswered, Message: "connection refused"}
}

func notWritten(x *v1alpha1.EffectivenessAssessment) {
	x.Spec.Execution, x.Spec.WrittenTime, x.Spec.PostHash = v1alpha1.ExecutionNone, nil, ""
	x.Status = v1alpha1.EffectivenessAssessmentStatus{
		Phase: v1alpha1.AssessmentCompleted, Reason: v1alpha1.AssessedNoExecution, Verdict: v1alpha1.VerdictInconclusive, Integrity: v1alpha1.IntegrityUnknown, Message: "the step did not write", Formula: 1,
	}
}

func untouched(x *v1alpha1.EffectivenessAssessment) {
	x.Status = v1alpha1.EffectivenessAssessmentStatus{}
	x.Spec.Policy.Name = "staging"
}

// ofRun has an assessment be about a run of release web, which led from one pod template to another.
func ofRun(run int64, from, to string) func(*v1alpha1.EffectivenessAssessment) {
	return func(x *v1alpha1.EffectivenessAssessment) {
		x.Name = fmt.Sprint("web-", run)
		x.Spec.Subject = v1alpha1.AssessmentSubject{Release: &v1alpha1.AssessedRun{Name: "web", UID: "uid-of-the-release", Run: run}}
		x.Spec.Policy, x.Spec.Action, x.Spec.PreHash, x.Spec.PostHash = v1alpha1.AssessedPolicy{}, v1alpha1.AssessedPromote, clitest.Pl1(from), clitest.Pl1(to)
		x.Status.CurrentHash = clitest.Pl1(to)
	}
}

// Two promotions within an hour built upon each other, and did not help.
func TestAssess_RunsOfReleases(t *testing.T) {
	objects := append(clitest.ObjectsOf(
		assessmentOf("a", 50*time.Minute, ofRun(3, "1", "2"), ineffective), assessmentOf("b", 20*time.Minute, ofRun(4, "2", "3"), ineffective), assessmentOf("well", time.Hour),
	), clitest.BaselineOf("web", func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = clitest.Pl1("a") }))
	for name, args := range map[string][]string{
		"list-runs":    {"assess", "list", "-o", "wide"},
		"show-run":     {"assess", "show", "web-4"},
		"history-runs": {"assess", "history", "deployment/web", "-o", "wide"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func allAssessments() []client.Object {
	objects := clitest.ObjectsOf(
		assessmentOf("undone", 3*time.Hour, invalidated), assessmentOf("failed", 2*time.Hour, ineffective), assessmentOf("well", time.Hour),
		assessmentOf("skipped", 50*time.Minute, notWritten), assessmentOf("busy", 10*time.Minute, underWay), assessmentOf("new", time.Minute, untouched),
	)
	web := clitest.BaselineOf("web", func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = clitest.Pl1("a") })
	another := planThatTurned("failed", v1alpha1.BreakerClosed)
	another.UID = "of-a-plan-that-had-this-name"
	return append(objects, web, clitest.PolicyOf("production", clitest.ActiveBy("bob")),
		planThatTurned("well", v1alpha1.BreakerClosed), planThatTurned("undone", v1alpha1.BreakerOpen), another)
}

// planThatTurned is a plan of which the verdict on its first step turned the breaker.
func planThatTurned(name string, breaker v1alpha1.BreakerState) *v1alpha1.RemediationPlan {
	return clitest.PlanOf(name, func(p *v1alpha1.RemediationPlan) {
		p.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepVerified, Effect: &v1alpha1.StepEffect{Verdict: v1alpha1.VerdictEffective, AssessmentName: name + "-0", BreakerState: breaker}}}
	})
}

func TestAssess_Golden(t *testing.T) {
	cases := map[string][]string{
		"list":             {"assess", "list"},
		"list-all":         {"assess", "list", "-A", "-o", "wide"},
		"list-bad":         {"assess", "list", "--verdict", "Ineffective,Invalidated", "--no-headers"},
		"list-other":       {"assess", "list", "-A", "--policy", "staging", "-o", "name"},
		"show":             {"assess", "show", "well-0"},
		"show-formula":     {"assess", "show", "well-0", "--formula"},
		"show-ineffective": {"assess", "show", "failed-0", "--formula"},
		"show-invalidated": {"assess", "show", "undone-0"},
		"show-nothing":     {"assess", "show", "skipped-0", "--formula"},
		"show-new":         {"assess", "show", "deployment/web"},
		"show-json":        {"assess", "show", "skipped-0", "-o", "json"},
		"history":          {"assess", "history", "deployment/web"},
		"history-yaml":     {"assess", "history", "deployment", "web", "-o", "yaml"},
		"explain":          {"assess", "explain", "busy-0"},
		"explain-new":      {"assess", "explain", "new-0"},
		"explain-ended":    {"assess", "explain", "undone-0"},
		"explain-json":     {"assess", "explain", "busy-0", "-o", "json"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: allAssessments()}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestAssess_Mistakes(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string // in standard error
	}{
		"no assessment is named":        {[]string{"assess", "show"}, "error: name one assessment, or an object as TYPE/NAME"},
		"nothing is explained":          {[]string{"assess", "explain"}, "error: name one assessment, or an object as TYPE/NAME"},
		"one that is not there":         {[]string{"assess", "show", "nope"}, `Error from server (NotFound): effectivenessassessments.plumbline.dev "nope" not found`},
		"a verdict that is none":        {[]string{"assess", "list", "--verdict", "Splendid"}, `there is no verdict "Splendid", want one of Effective,`},
		"an output format that is none": {[]string{"assess", "history", "deployment/web", "-o", "csv"}, `output format "csv"`},
		"an object without assessments": {[]string{"assess", "show", "deployment/cart"}, "no assessment of deployment.apps/cart is there"},
		"no policy to forgive":          {[]string{"assess", "forgive"}, "error: name one policy"},
		"a policy that is not there":    {[]string{"assess", "forgive", "nope"}, `remediationpolicies.plumbline.dev "nope" not found`},
		"a dry run that is none":        {[]string{"assess", "forgive", "production", "--dry-run=maybe"}, "invalid dry-run value (maybe)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: []client.Object{clitest.BaselineOf("cart")}}.Run(t, verbs, "", tc.args...)
			if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("%q gave %+v, want %q", tc.args, got, tc.want)
			}
		})
	}
	none := clitest.Cluster{}.Run(t, verbs, "", "assess", "list")
	if none.Code != 0 || none.Stdout != "" || none.Stderr != "No assessments found in shop namespace.\n" {
		t.Errorf("an empty namespace gave %+v", none)
	}
}

func TestAssessForgive_SaysWhenAPersonHasLooked(t *testing.T) {
	cases := map[string]struct {
		args   []string
		stdout string
		want   string
	}{
		"at once":                  {nil, "remediationpolicy.plumbline.dev/production forgiven\n", "2026-03-01T12:00:00Z"},
		"not in a dry run":         {[]string{"--dry-run"}, "remediationpolicy.plumbline.dev/production forgiven (dry run)\n", ""},
		"nor in one of the server": {[]string{"--dry-run=server"}, "remediationpolicy.plumbline.dev/production forgiven (server dry run)\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := clitest.PolicyOf("production", clitest.ActiveBy("bob"))
			inv, finish := clitest.NewInvocation(t, "")
			c := clitest.Cluster{Objects: []client.Object{policy}}.Connect(t)
			inv.Connect = func() (*invocation.Cluster, error) { return c, nil }
			got := finish(clitest.Run(t, inv, verbs, append([]string{"assess", "forgive", "production"}, tc.args...)))
			if got.Code != 0 || got.Stdout != tc.stdout {
				t.Errorf("got %+v", got)
			}
			stored := &v1alpha1.RemediationPolicy{}
			clitest.Must(t, c.Get(t.Context(), client.ObjectKey{Name: "production"}, stored))
			if got := stored.Annotations[v1alpha1.AnnotationChainsForgiven]; got != tc.want || stored.Spec.RequestedBy != "bob" {
				t.Errorf("the policy says %q, and acts as %s", got, stored.Spec.RequestedBy)
			}
		})
	}
}
