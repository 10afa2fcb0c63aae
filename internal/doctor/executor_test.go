// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestExecutorRights_AreThoseOfTheChart holds what the check knows against the list
// of rights that the tests of the chart take from what it renders.
func TestExecutorRights_AreThoseOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../test/chart/testdata/rights-executor.txt")
	if err != nil {
		t.Fatal(err)
	}
	var chart, known []string
	for line := range strings.Lines(string(content)) {
		right, found := strings.CutPrefix(strings.TrimSpace(line), ExecutorName+": ")
		// Those in shop follow from guard.resources, those on Secrets from
		// notifications.secrets.
		if found && !strings.HasSuffix(right, ", in shop") && !strings.Contains(right, " secrets ") {
			chart = append(chart, right)
		}
	}
	for where, grants := range map[string][]grant{"everywhere": executorEverywhere, "in " + own: executorAtHome} {
		for _, g := range grants {
			words := strings.Join(g.verbs, ",")
			for _, resource := range g.resources {
				words += " " + chartWords(g.group, resource)
			}
			if len(g.names) > 0 {
				words += " named " + strings.Join(g.names, ",")
			}
			known = append(known, words+", "+where)
		}
	}
	slices.Sort(chart)
	slices.Sort(known)
	if diff := cmp.Diff(chart, known); diff != "" {
		t.Errorf("(-chart +known):\n%s", diff)
	}
}

// TestExecutorRights_OfReleaseWorksAreThoseOfTheChart does likewise where rollouts are enabled, and holds that
// these rights are neither missed nor found too many where the executor carries works out.
func TestExecutorRights_OfReleaseWorksAreThoseOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../test/chart/testdata/rights-works.txt")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, g := range executorDelivery {
		known = append(known, fmt.Sprintf("%s: %s %s, everywhere", ExecutorName, strings.Join(g.verbs, ","), chartWords(g.group, g.resources[0])))
	}
	known = append(known, fmt.Sprintf("role %s: list %s, where bound", executorTargets, chartWords(autoscalersFound.group, autoscalersFound.resources[0])))
	slices.Sort(known)
	if diff := cmp.Diff(strings.TrimSpace(string(content)), strings.Join(known, "\n")); diff != "" {
		t.Errorf("(-chart +known):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		works, bound bool
		want         string
	}{
		"neither":                        {false, false, ""},
		"works without the rights":       {true, false, "it may not"},
		"works with the rights":          {true, true, ""},
		"the rights without being asked": {false, true, "which is more than it needs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			if tc.works {
				w := s.executorWorkload()
				w.Args = append(w.Args, releaseWorksFlag)
			}
			if tc.bound {
				r := &s.Roles.Value
				r.ClusterRoles[executorTargets] = append(r.ClusterRoles[executorTargets], rulesOf([]grant{autoscalersFound})...)
				r.ClusterRoles["plumbline-executor-delivery"] = rulesOf(executorDelivery)
				r.ClusterBindings = append(r.ClusterBindings, RoleBinding{Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: "plumbline-executor-delivery"}, Subjects: []rbacv1.Subject{account(own, ExecutorName)}})
			}
			var messages []string
			for _, f := range checkExecutorRights(s) {
				messages = append(messages, f.Message)
			}
			if got := strings.Join(messages, "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("found is %q, want %q in it", got, tc.want)
			}
		})
	}
}

// TestExecutorRights_OfStandbysAreThoseOfTheChart does likewise where the owner of a namespace lets the executor
// make standbys.
func TestExecutorRights_OfStandbysAreThoseOfTheChart(t *testing.T) {
	const executorStandbysRole = "plumbline-executor-standbys"
	content, err := os.ReadFile("../../test/chart/testdata/rights-standbys.txt")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, g := range executorMesh {
		var resources []string
		for _, resource := range g.resources {
			resources = append(resources, chartWords(g.group, resource))
		}
		known = append(known, fmt.Sprintf("%s: %s %s, everywhere", ExecutorName, strings.Join(g.verbs, ","), strings.Join(resources, " ")))
	}
	for _, g := range executorStandbys {
		known = append(known, fmt.Sprintf("role %s: %s %s, where bound", executorStandbysRole, strings.Join(g.verbs, ","), chartWords(g.group, g.resources[0])))
	}
	slices.Sort(known)
	if diff := cmp.Diff(strings.TrimSpace(string(content)), strings.Join(known, "\n")); diff != "" {
		t.Errorf("(-chart +known):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		mesh bool
		in   string
		want string
	}{
		"beside the targets":             {true, "shop", ""},
		"where nothing is put back":      {true, "pay", "which is more than it needs"},
		"in an installation without one": {false, "shop", "which is more than it needs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			r := &s.Roles.Value
			subjects := []rbacv1.Subject{account(own, ExecutorName)}
			if tc.mesh {
				w := s.executorWorkload()
				w.Args = append(w.Args, meshFlag)
				r.ClusterRoles["plumbline-executor-mesh"] = rulesOf(executorMesh)
				r.ClusterBindings = append(r.ClusterBindings, RoleBinding{Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: "plumbline-executor-mesh"}, Subjects: subjects})
			}
			r.ClusterRoles[executorStandbysRole] = rulesOf(executorStandbys)
			r.Bindings = append(r.Bindings, RoleBinding{Namespace: tc.in, Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: executorStandbysRole}, Subjects: subjects})
			var messages []string
			for _, f := range checkExecutorRights(s) {
				messages = append(messages, f.Message)
			}
			if got := strings.Join(messages, "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("found is %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestExecutorRights_ToReadAssessmentsAreNeededWhereEffectsAreAssessed(t *testing.T) {
	for name, tc := range map[string]struct {
		assesses, held bool
		want           string
	}{
		"effects are assessed":                           {true, true, ""},
		"effects are assessed, and the right is missing": {true, false, "effectivenessassessments.plumbline.dev"},
		"effects are not assessed":                       {false, true, "which is more than it needs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			r := &s.Roles.Value
			if tc.held {
				r.ClusterRoles[ExecutorName] = append(r.ClusterRoles[ExecutorName], rulesOf(executorEffects)...)
			}
			for i := range s.Workloads.Value {
				if w := &s.Workloads.Value[i]; tc.assesses && w.Name == AssessorName {
					w.Args = append(w.Args, effectivenessFlag+"true")
				}
			}
			var messages []string
			for _, f := range checkExecutorRights(s) {
				messages = append(messages, f.Message)
			}
			if got := strings.Join(messages, "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("found is %q, want %q in it", got, tc.want)
			}
		})
	}
}

// chartWords writes a resource as the tests of the chart do: of a subresource the
// group comes first.
func chartWords(group, resource string) string { return target{group, resource}.String() }

// TestNeverTargets_AreThoseOfTheChart: what the chart denies as a target is no right
// that the executor lacks.
func TestNeverTargets_AreThoseOfTheChart(t *testing.T) {
	content, err := os.ReadFile("../../charts/plumbline/templates/policies/_remediation.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(content), `define "plumbline.remediation.deniedGroups"`)
	list, _, _ = strings.Cut(list, "end }}")
	var chart []string
	for _, match := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list, -1) {
		chart = append(chart, match[1])
	}
	if diff := cmp.Diff(chart, neverTargets); diff != "" {
		t.Errorf("(-chart +known):\n%s", diff)
	}
}

// TestCountingOnNobody_SaysWhichValuesMendIt: the values that are told name the
// namespaces of the policies' Environments, and none that is excluded.
func TestCountingOnNobody_SaysWhichValuesMendIt(t *testing.T) {
	s := healthy(t)
	withoutExecutor(t, s)
	s.Remediation.Policies.Value = append(s.Remediation.Policies.Value, remediationPolicy("more", "production"), remediationPolicy("all", "everything"))
	s.Remediation.Environments.Value = append(s.Remediation.Environments.Value, Environment{Name: "everything", Namespaces: []string{"kube-system", own, "web"}})
	want := []Finding{{
		Severity: Warning, Object: "RemediationPolicy/all",
		Message: "there is no remediation, though policies are Active (all, images, more): the executor is not enabled",
		Fix: "enable it with these values of the chart, and apply the chart again:\nexecutor:\n  enabled: true\n  namespaces: [shop, web]\n" +
			"or let the policies observe only:\nkubectl plumbline policy deactivate all",
	}}
	if diff := cmp.Diff(want, checkExecutorWorkload(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExecutorNamespaces_TheFixNamesEachNamespace, and the account of the namespace
// that Plumbline is in.
func TestExecutorNamespaces_TheFixNamesEachNamespace(t *testing.T) {
	s := healthy(t)
	s.Namespace = "elsewhere"
	const bindShop = "kubectl create rolebinding plumbline-executor-targets -n shop --clusterrole=plumbline-executor-targets --serviceaccount=elsewhere:plumbline-executor"
	for _, f := range Examine(s).Findings {
		if f.ID != "executor.namespaces" {
			continue
		}
		if want := "add to executor.namespaces of the chart's values and apply the chart again, or:\n" + bindShop; f.Fix != want {
			t.Errorf("got %q, want %q", f.Fix, want)
		}
		return
	}
	t.Error("the account of another namespace counts as bound")
}

func TestPlans_Add(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: testNow.Add(time.Duration(minutes) * time.Minute)}
	}
	cases := map[string]struct {
		spec   v1alpha1.RemediationPlanSpec
		status v1alpha1.RemediationPlanStatus
		want   Plans
	}{
		"it has ended":               {status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanPartialSuccess, DeferralReason: "left over"}},
		"it runs":                    {status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, want: Plans{Unfinished: 1}},
		"it runs, and waits":         {status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, DeferralReason: "Cooldown"}, want: Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "Cooldown"}}}},
		"nobody has looked at it":    {want: Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow}}}},
		"it was looked at once":      {status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated}, want: Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "it is Created"}}}},
		"a phase of tomorrow":        {status: v1alpha1.RemediationPlanStatus{Phase: "Dreaming"}, want: Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "it is Dreaming"}}}},
		"it is put off until a time": {status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, DeferralReason: "closed", ResumeTime: at(9)}, want: Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "closed", Until: at(9).Time}}}},
		"it is to begin later": {
			spec:   v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{ScheduledTime: at(30)}},
			status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanScheduled, DeferralReason: "it is scheduled"},
			want:   Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: at(30).Time, Why: "it is scheduled"}}},
		},
		"a person paused it": {
			spec:   v1alpha1.RemediationPlanSpec{Control: v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice"}},
			status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanPaused},
			want:   Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "paused by alice", Person: true}}},
		},
		"a person is to execute it": {
			spec:   v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{Trigger: v1alpha1.TriggerManual}},
			status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, DeferralReason: "for somebody"},
			want:   Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "for somebody", Person: true}}},
		},
		"a person has asked for it": {
			spec:   v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{Trigger: v1alpha1.TriggerManual, Request: &v1alpha1.PlanRequest{Name: "ask", UID: "u"}}},
			status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, DeferralReason: "MaxPerHour"},
			want:   Plans{Unfinished: 1, Waiting: []WaitingPlan{{Since: testNow, Why: "MaxPerHour"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Plans
			got.Add(&v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(testNow)}, Spec: tc.spec, Status: tc.status})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyPlans_AreCounted: a report stays readable.
func TestManyPlans_AreCounted(t *testing.T) {
	s := healthy(t)
	for i := range 30 {
		s.Remediation.Plans.Value.Waiting = append(s.Remediation.Plans.Value.Waiting,
			WaitingPlan{Namespace: "shop", Name: fmt.Sprintf("p-%02d", i), Since: testNow.Add(-2 * time.Hour), Why: "Cooldown"})
	}
	shown, last := 0, ""
	for _, f := range Examine(s).Findings {
		if f.ID == "remediation.plans" {
			shown, last = shown+1, f.Message
		}
	}
	if shown != maxPerCheck+1 || last != "and 10 more of this check" {
		t.Errorf("%d are shown, the last one says %q", shown, last)
	}
}
