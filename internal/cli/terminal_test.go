// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// hostileFleet has that string wherever somebody else decides what stands there.
func hostileFleet(t *testing.T) []client.Object {
	t.Helper()
	f := clitest.Found("/spec/template/metadata/annotations/"+clitest.Hostile, `"`+clitest.Hostile+`"`, `"`+clitest.Hostile+`"`, clitest.Hostile, time.Minute)
	f.Actor.FieldManager, f.Actor.BreakGlassReason = clitest.Hostile, clitest.Hostile
	web := clitest.BaselineOf("web", clitest.Drifted(f), func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.By = clitest.Hostile
		b.Status.Guards = []string{clitest.Hostile}
		b.Status.Contention = &v1alpha1.Contention{StartTime: clitest.Before(time.Minute), With: []string{clitest.Hostile}}
		b.Status.Masks = []v1alpha1.Mask{{Path: "/spec/replicas", Value: "1", Rule: clitest.Hostile, Actor: v1alpha1.Actor{User: clitest.Hostile}}}
	})
	revision := clitest.RevisionOf(t, web, 3, `{"spec":{"replicas":1,"x":"old"}}`)
	revision.Spec.By = clitest.Hostile
	objects := []client.Object{web, revision}
	return append(objects, hostileRemediation()...)
}

// hostileRemediation has it in what a policy, a plan and a ledger say.
func hostileRemediation() []client.Object {
	plan := clitest.PlanOf("p", clitest.Eventful, clitest.Asked(v1alpha1.PlanPause, clitest.Hostile, clitest.Hostile), func(p *v1alpha1.RemediationPlan) {
		plan := &p.Spec.Plan
		plan.Requester, plan.InitiatedBy, plan.CorrelationID, plan.DriftReportID, plan.Policy.Digest = clitest.Hostile, clitest.Hostile, clitest.Hostile, clitest.Hostile, clitest.Hostile
		plan.LeftOut[0].Message, plan.Targets[0].Actors, plan.Targets[0].Paths = clitest.Hostile, []string{clitest.Hostile}, []string{clitest.Hostile}
		p.Status.Steps[0].Message, p.Status.Steps[0].Logs = clitest.Hostile, []string{clitest.Hostile}
		p.Status.Holder, p.Status.EndedBy = clitest.Hostile, clitest.Hostile
	})
	policy := clitest.PolicyOf("production", clitest.ActiveBy(clitest.Hostile, clitest.Hostile), func(p *v1alpha1.RemediationPolicy) { p.Status.WaitingFor = clitest.Hostile })
	ledger := clitest.LedgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: clitest.Hostile, Reason: clitest.Hostile}
	})
	return []client.Object{
		plan, clitest.PlanOf("waits", clitest.Deferred(clitest.Hostile, nil)), policy, ledger,
		&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}},
	}
}

// Whatever somebody else wrote, no command lets it command the terminal, add a
// line, or hide what stands beside it.
func TestNothingThatOthersWroteMovesTheTerminal(t *testing.T) {
	quoted, err := json.Marshal(clitest.Hostile)
	if err != nil {
		t.Fatal(err)
	}
	live := clitest.LiveBody(t, `{"replicas":1,"x":`+string(quoted)+`,"z`+strings.Trim(string(quoted), `"`)+`":1}`)
	for name, args := range map[string][]string{
		"status":           {"status"},
		"status, wide":     {"status", "-o", "wide"},
		"blame":            {"blame", "deployment/web"},
		"blame, wide":      {"blame", "deployment/web", "-o", "wide"},
		"blame, JSON":      {"blame", "deployment/web", "-o", "json"},
		"diff":             {"diff", "deployment/web"},
		"diff, JSON":       {"diff", "deployment/web", "-o", "json"},
		"history":          {"history", "deployment/web"},
		"history, JSON":    {"history", "deployment/web", "-o", "json"},
		"accept":           {"accept", "deployment/web", "--dry-run"},
		"accept, filtered": {"accept", "--by", "nobody-else", "--since", "1h", "--dry-run"},
		"a strange name":   {"blame", "deployment/" + clitest.Hostile},
		"a strange type":   {"status", clitest.Hostile},
		"plans":            {"plan", "list"},
		"plans, wide":      {"plan", "list", "-o", "wide"},
		"a plan":           {"plan", "show", "p"},
		"a plan, as JSON":  {"plan", "show", "p", "-o", "json"},
		"a plan, asked":    {"plan", "execute", "p", "--dry-run"},
		"a strange plan":   {"plan", "show", clitest.Hostile},
		"policies":         {"policy", "list", "-o", "wide"},
		"a policy":         {"policy", "activate", "production", "--dry-run"},
		"an explanation":   {"policy", "explain", "deployment/web"},
		"a preview":        {"plan", "preview", "production"},
		"a halt":           {"halt", "production", "--reason", "x"},
		"a check":          {"check", "deployment/web", "--timeout", "1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: hostileFleet(t), Live: map[string]string{"web": live}}.Run(t, verbs, "", args...)
			for line := range strings.SplitSeq(got.Stdout+got.Stderr, "\n") {
				if strings.HasPrefix(line, "DEPLOYMENT in sync") {
					t.Errorf("a line was added:\n%q", line)
				}
				if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }); i >= 0 {
					t.Errorf("%q is printed in\n%q", line[i:min(len(line), i+8)], line)
				}
			}
			if got.Stdout+got.Stderr == "" {
				t.Error("nothing was printed")
			}
		})
	}
}
