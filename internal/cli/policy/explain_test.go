// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestExplain_Golden(t *testing.T) {
	acts := clitest.ActiveBy("alice")
	young := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.MinimumDriftAge = &metav1.Duration{Duration: 2 * time.Hour}
	}
	halted := clitest.LedgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "INC-9"}
		l.Status.Sequence = 4
	})
	cases := map[string]struct {
		policy  []func(*v1alpha1.RemediationPolicy)
		objects []client.Object
		args    []string
	}{
		"now":       {policy: []func(*v1alpha1.RemediationPolicy){acts}, args: []string{"production"}},
		"observes":  {args: []string{"deployment/web"}},
		"later":     {policy: []func(*v1alpha1.RemediationPolicy){acts, young}, args: []string{"production", "deployment/web", "deployment/calm"}},
		"halted":    {policy: []func(*v1alpha1.RemediationPolicy){acts}, objects: []client.Object{halted}, args: []string{"production", "-A"}},
		"under-way": {policy: []func(*v1alpha1.RemediationPolicy){acts}, objects: []client.Object{clitest.PlanOf("busy", clitest.InPhase(v1alpha1.PlanRunning))}, args: []string{"deployment/web"}},
		"not-selected": {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) {
			p.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "ConfigMap"}}
		}}, args: []string{"production", "deployment/web"}},
		"json": {policy: []func(*v1alpha1.RemediationPolicy){acts}, args: []string{"production", "-o", "json"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Shop(t, tc.policy...)
			f.Objects = append(f.Objects, tc.objects...)
			got := f.Run(t, verbs, "", append([]string{"policy", "explain"}, tc.args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "explain/"+name+".txt"), got.Stdout)
		})
	}
}

// The clock of whoever asks may be wrong; what is explained is what the assessor
// and the executor do, which go by the API server's time.
func TestExplain_ByTheTimeOfTheAPIServer(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("alice"))
	f.Time = func() time.Time { return clitest.Before(0).Add(30 * time.Minute) }
	for _, command := range [][]string{{"policy", "explain", "production"}, {"policy", "explain", "deployment/web"}} {
		got := f.Run(t, verbs, "", command...)
		if got.Code != 0 || !strings.Contains(got.Stdout, "Age             1h30m") {
			t.Errorf("%v: got %d %s, want an age of half an hour more", command, got.Code, got.Stdout+got.Stderr)
		}
	}
}

func TestExplain_Failures(t *testing.T) {
	zone := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "22:00", End: "23:00", TimeZone: "Mars/Base"}}
	}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		args   []string
		code   int
		want   string
	}{
		"nothing named":                       {code: 1, want: "error: name a policy, or an object as TYPE/NAME\n"},
		"a policy that is not there":          {args: []string{"nope"}, code: 1, want: `remediationpolicies.plumbline.dev "nope" not found`},
		"an object that has no Baseline":      {args: []string{"deployment/nope"}, code: 1, want: "deployment.apps/nope in namespace shop has no Baseline"},
		"two policies":                        {args: []string{"production", "staging"}, code: 1, want: `name objects as TYPE/NAME: "staging"`},
		"a namespace without drift":           {args: []string{"production", "-n", "other"}, want: ""},
		"a policy that has to be put right":   {policy: []func(*v1alpha1.RemediationPolicy){zone}, args: []string{"production"}, want: "Warning: policy production makes no plans before this is put right: spec.schedule.maintenanceWindow.timeZone"},
		"an object by name in all namespaces": {args: []string{"deployment/web", "-A"}, code: 1, want: "a resource cannot be retrieved by name across all namespaces"},
		"an output format that is none":       {args: []string{"production", "-o", "csv"}, code: 1, want: `output format "csv"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Shop(t, tc.policy...).Run(t, verbs, "", append([]string{"policy", "explain"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestExplain_CompletesPoliciesThenObjects(t *testing.T) {
	f := clitest.Shop(t)
	if got := f.Run(t, verbs, "", "__complete", "policy", "explain", "pro"); !strings.HasPrefix(got.Stdout, "production\tObserveOnly\n") {
		t.Errorf("got %q", got.Stdout)
	}
	for _, args := range [][]string{{"production", "deployment/w"}, {"deployment/w"}} {
		if got := f.Run(t, verbs, "", append([]string{"__complete", "policy", "explain"}, args...)...); !strings.HasPrefix(got.Stdout, "deployment/web\t") {
			t.Errorf("%q gave %q", args, got.Stdout)
		}
	}
}

// The verdict and the gates that keep a drift from its remediation come before the open ones.
func TestPolicyExplain_ShowsClosedGatesFirst(t *testing.T) {
	got := clitest.Shop(t, clitest.ActiveBy("bob"), clitest.TooOld).Run(t, verbs, "", "policy", "explain", "production", "deployment/web")
	verdict, closed := strings.Index(got.Stdout, "=> "), strings.LastIndex(got.Stdout, "✗")
	rest, open := strings.Index(got.Stdout, "Open, or left aside\n"), strings.Index(got.Stdout, "✓")
	if verdict < 0 || closed < verdict || rest < closed || open < rest {
		t.Errorf("the verdict is at %d, the last closed gate at %d, the heading at %d, the first open gate at %d in\n%s", verdict, closed, rest, open, got.Stdout)
	}
}

// A person reads what to run about a drift that the policy leaves to people.
func TestPolicyExplain_NamesTheCommandOfAPerson(t *testing.T) {
	got := clitest.Shop(t, clitest.ActiveBy("bob"), clitest.TooOld).Run(t, verbs, "", "policy", "explain", "production", "deployment/web")
	const want = "\n   To remediate it now: kubectl plumbline remediate deployment.apps/web -n shop --policy production\n"
	if !strings.Contains(got.Stdout, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// Three lines said the same about options that only the executor knows.
func TestPolicyExplain_TellsTheOptionsOfTheExecutorOnce(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("bob"))
	got := f.Run(t, verbs, "", "policy", "explain", "production", "deployment/web")
	if n := strings.Count(got.Stdout, "?"); n != 1 || !strings.Contains(got.Stdout, "  ? unknown here, as options of the executor: CapConcurrent, CapPerHour, CapPerDay\n") {
		t.Errorf("%d unknown gates have a line, want one:\n%s", n, got.Stdout)
	}
	if wide := f.Run(t, verbs, "", "policy", "explain", "production", "deployment/web", "-o", "wide"); strings.Count(wide.Stdout, "\n  ? Cap") != 3 {
		t.Errorf("-o wide has no line for each:\n%s", wide.Stdout)
	}
}
