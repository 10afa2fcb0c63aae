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
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// hostile clears a screen, ends a line, comes back over it, reverses what
// follows, hides a character, and speaks C1.
const hostile = "eve\x1b[2J\x1b]0;title\a\nDEPLOYMENT in sync\rroot\u202egnp.exe\u200b\u009b31m\u2028"

// hostileFleet has that string wherever somebody else decides what stands there.
func hostileFleet(t *testing.T) []client.Object {
	t.Helper()
	f := found("/spec/template/metadata/annotations/"+hostile, `"`+hostile+`"`, `"`+hostile+`"`, hostile, time.Minute)
	f.Actor.FieldManager, f.Actor.BreakGlassReason = hostile, hostile
	web := baselineOf("web", drifted(f), func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.By = hostile
		b.Status.Guards = []string{hostile}
		b.Status.Contention = &v1alpha1.Contention{StartTime: before(time.Minute), With: []string{hostile}}
		b.Status.Masks = []v1alpha1.Mask{{Path: "/spec/replicas", Value: "1", Rule: hostile, Actor: v1alpha1.Actor{User: hostile}}}
	})
	revision := revisionOf(t, web, 3, `{"spec":{"replicas":1,"x":"old"}}`)
	revision.Spec.By = hostile
	objects := []client.Object{web, revision}
	return append(objects, hostileRemediation()...)
}

// hostileRemediation has it in what a policy, a plan and a ledger say.
func hostileRemediation() []client.Object {
	plan := planOf("p", eventful, asked(v1alpha1.PlanPause, hostile, hostile), func(p *v1alpha1.RemediationPlan) {
		plan := &p.Spec.Plan
		plan.Requester, plan.InitiatedBy, plan.CorrelationID, plan.DriftReportID, plan.Policy.Digest = hostile, hostile, hostile, hostile, hostile
		plan.LeftOut[0].Message, plan.Targets[0].Actors, plan.Targets[0].Paths = hostile, []string{hostile}, []string{hostile}
		p.Status.Steps[0].Message, p.Status.Steps[0].Logs = hostile, []string{hostile}
		p.Status.Holder, p.Status.EndedBy = hostile, hostile
	})
	policy := policyOf("production", activeBy(hostile, hostile), func(p *v1alpha1.RemediationPolicy) { p.Status.WaitingFor = hostile })
	ledger := ledgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: hostile, Reason: hostile}
	})
	return []client.Object{
		plan, planOf("waits", deferred(hostile, nil)), policy, ledger,
		&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}},
	}
}

// Whatever somebody else wrote, no command lets it command the terminal, add a
// line, or hide what stands beside it.
func TestNothingThatOthersWroteMovesTheTerminal(t *testing.T) {
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	live := liveBody(t, `{"replicas":1,"x":`+string(quoted)+`,"z`+strings.Trim(string(quoted), `"`)+`":1}`)
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
		"a strange name":   {"blame", "deployment/" + hostile},
		"a strange type":   {"status", hostile},
		"plans":            {"plan", "list"},
		"plans, wide":      {"plan", "list", "-o", "wide"},
		"a plan":           {"plan", "show", "p"},
		"a plan, as JSON":  {"plan", "show", "p", "-o", "json"},
		"a plan, asked":    {"plan", "execute", "p", "--dry-run"},
		"a strange plan":   {"plan", "show", hostile},
		"policies":         {"policy", "list", "-o", "wide"},
		"a policy":         {"policy", "activate", "production", "--dry-run"},
		"an explanation":   {"policy", "explain", "deployment/web"},
		"a preview":        {"plan", "preview", "production"},
		"a halt":           {"halt", "production", "--reason", "x"},
		"a check":          {"check", "deployment/web", "--wait", "1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: hostileFleet(t), live: map[string]string{"web": live}}.run(t, "", args...)
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

func TestEscapedJSONSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		escaped := escapeUnprintable(raw)
		var got, plain string
		if err := json.Unmarshal(escaped, &got); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		if err := json.Unmarshal(raw, &plain); err != nil || got != plain {
			t.Fatalf("%q became %q (%v)", plain, got, err)
		}
		if strings.ContainsFunc(string(escaped), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q is left", escaped)
		}
	})
}
