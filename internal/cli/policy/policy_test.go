// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func allPolicies() []client.Object {
	waiting := func(p *v1alpha1.RemediationPolicy) {
		p.Status.WaitingFor = "the maintenance window is closed until 2026-03-01T22:00:00Z, and the breaker is open"
		p.Status.LastPlanName = "shop/production-3f9c2a"
	}
	unseen := func(p *v1alpha1.RemediationPolicy) { p.Generation++; p.Status.Conditions = nil }
	return clitest.ObjectsOf(
		clitest.PolicyOf("production", clitest.ActiveBy("bob", "sre"), waiting), clitest.PolicyOf("edited", unseen), clitest.PolicyOf("calm"),
		clitest.PolicyOf("stopped", func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeHalted }),
		clitest.PolicyOf("other", clitest.ActsAs("shop/repairs"), func(p *v1alpha1.RemediationPolicy) { p.Spec.EnvironmentName = "staging" }),
	)
}

func TestPolicy_Golden(t *testing.T) {
	cases := map[string][]string{
		"list":      {"policy", "list"},
		"list-wide": {"policy", "list", "-o", "wide"},
		"list-one":  {"policy", "list", "--environment", "staging", "--no-headers"},
		"list-name": {"policy", "list", "-o", "name"},
		"activate":  {"policy", "activate", "production", "--dry-run"},
		"account":   {"policy", "activate", "other", "--dry-run"},
		"unseen":    {"policy", "activate", "edited", "--dry-run", "--group", "sre"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: allPolicies()}.Run(t, verbs, "", args...)
			if got.Code != 0 {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "policy/"+name+".txt"), got.Stderr+"--- stdout\n"+got.Stdout)
		})
	}
}

func TestPolicyMode_Sets(t *testing.T) {
	mine := []string{"sre", "system:authenticated"}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		stdin  string
		args   []string
		code   int
		stdout string
		stderr string // end of it
		want   *v1alpha1.RemediationPolicySpec
	}{
		"activated after a yes, with all of the user's groups": {
			stdin: "y\n", args: []string{"activate"}, stdout: "remediationpolicy.plumbline.dev/p activated\n", stderr: "Activate p? (y/N): ",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice", RequestedByGroups: mine},
		},
		"not after a no": {
			stdin: "n\n", args: []string{"activate"}, code: 1, stderr: "Activate p? (y/N): error: nothing was activated\n",
		},
		"not where nobody answers": {
			args: []string{"activate"}, code: 1, stderr: "error: nothing was activated: activating a policy needs a confirmation, and standard input is no terminal; use --yes\n",
		},
		"where nobody answers, but told": {
			args: []string{"activate", "--yes", "--group", "sre"}, stdout: "remediationpolicy.plumbline.dev/p activated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice", RequestedByGroups: []string{"sre"}},
		},
		"with no group's rights": {
			args: []string{"activate", "--yes", "--group", ""}, stdout: "remediationpolicy.plumbline.dev/p activated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice"},
		},
		"not with another's group": {
			args: []string{"activate", "--yes", "--group", "system:masters"}, code: 1, stderr: "error: you (alice) are not in the group \"system:masters\"\n",
		},
		"taken over from somebody else": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("bob", "sre")}, args: []string{"activate", "--yes"}, stdout: "remediationpolicy.plumbline.dev/p activated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice", RequestedByGroups: mine},
		},
		"active already with these very rights": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("alice", mine...)}, args: []string{"activate"}, stdout: "remediationpolicy.plumbline.dev/p is activated already\n",
		},
		"active already with other groups": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("alice", "sre")}, args: []string{"activate", "--yes"}, stdout: "remediationpolicy.plumbline.dev/p activated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice", RequestedByGroups: mine},
		},
		"a server dry run stores nothing": {
			args: []string{"activate", "--dry-run=server"}, stdout: "remediationpolicy.plumbline.dev/p activated (server dry run)\n",
		},
		"deactivated without a question, and without groups": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("bob", "sre")}, args: []string{"deactivate"}, stdout: "remediationpolicy.plumbline.dev/p deactivated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeObserveOnly, RequestedBy: "alice"},
		},
		"deactivated already": {
			args: []string{"deactivate"}, stdout: "remediationpolicy.plumbline.dev/p is deactivated already\n",
		},
		"activated, and acts as its service account": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActsAs("shop/repairs")}, args: []string{"activate", "--yes"}, stdout: "remediationpolicy.plumbline.dev/p activated\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, ServiceAccountName: "shop/repairs"},
		},
		"a service account's policy is active already": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy(""), clitest.ActsAs("shop/repairs")}, args: []string{"activate"}, stdout: "remediationpolicy.plumbline.dev/p is activated already\n",
		},
		"a service account's policy takes no groups": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActsAs("shop/repairs")}, args: []string{"activate", "--yes", "--group", "sre"}, code: 1,
			stderr: "error: the policy acts as the ServiceAccount shop/repairs, and its groups cannot be chosen; leave --group out\n",
		},
		"a service account's policy is halted, and keeps it": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy(""), clitest.ActsAs("shop/repairs")}, args: []string{"halt"}, stdout: "remediationpolicy.plumbline.dev/p halted\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeHalted, ServiceAccountName: "shop/repairs"},
		},
		"halted without a question": {
			policy: []func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("bob", "sre")}, args: []string{"halt"}, stdout: "remediationpolicy.plumbline.dev/p halted\n",
			want: &v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeHalted, RequestedBy: "alice"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := clitest.PolicyOf("p", tc.policy...)
			f := clitest.Cluster{Objects: clitest.ObjectsOf(policy)}
			var stored *v1alpha1.RemediationPolicySpec
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				var o client.PatchOptions
				o.ApplyOptions(options)
				err := api.Patch(ctx, object, patch, options...)
				if s := object.(*v1alpha1.RemediationPolicy).Spec; err == nil && len(o.DryRun) == 0 {
					stored = &v1alpha1.RemediationPolicySpec{Mode: s.Mode, RequestedBy: s.RequestedBy, RequestedByGroups: s.RequestedByGroups, ServiceAccountName: s.ServiceAccountName}
				}
				return err
			}
			args := append([]string{"policy", tc.args[0], "p", "--wait=false"}, tc.args[1:]...)
			got := f.Run(t, verbs, tc.stdin, args...)
			if got.Code != tc.code || got.Stdout != tc.stdout || !strings.HasSuffix(got.Stderr, tc.stderr) {
				t.Errorf("%q gave %+v", args, got)
			}
			if diff := cmp.Diff(tc.want, stored); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPolicyMode_TellsWhatTheAssessorMadeOfIt gives the wait one event.
func TestPolicyMode_TellsWhatTheAssessorMadeOfIt(t *testing.T) {
	looked := func(status metav1.ConditionStatus, waiting string) func(*v1alpha1.RemediationPolicy) *watch.Event {
		return func(p *v1alpha1.RemediationPolicy) *watch.Event {
			p.Status.ObservedGeneration, p.Status.WaitingFor = p.Generation, waiting
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: "UnknownZone", Message: "there is no zone Mars/Base"}}
			return &watch.Event{Type: watch.Modified, Object: p}
		}
	}
	cases := map[string]struct {
		event func(*v1alpha1.RemediationPolicy) *watch.Event
		args  []string
		code  int
		want  clitest.Answer
	}{
		"it works": {
			event: looked(metav1.ConditionTrue, ""), want: clitest.Answer{Stdout: "remediationpolicy.plumbline.dev/p activated: 3 drifted, 2 to be remediated\n"},
		},
		"it waits": {
			event: looked(metav1.ConditionTrue, "the window is closed"),
			want:  clitest.Answer{Stdout: "remediationpolicy.plumbline.dev/p activated: 3 drifted, 2 to be remediated: the window is closed\n"},
		},
		"it is not ready": {
			event: looked(metav1.ConditionFalse, ""),
			want: clitest.Answer{
				Stdout: "remediationpolicy.plumbline.dev/p activated: 3 drifted, 2 to be remediated\n",
				Stderr: "Warning: p is not ready: UnknownZone: there is no zone Mars/Base\n",
			},
		},
		"it was deleted": {
			event: func(p *v1alpha1.RemediationPolicy) *watch.Event { return &watch.Event{Type: watch.Deleted, Object: p} },
			want:  clitest.Answer{Code: 1, Stderr: "error: p was deleted meanwhile\n"},
		},
		"nobody looks": {
			event: func(*v1alpha1.RemediationPolicy) *watch.Event { return nil }, args: []string{"--timeout", "20ms"},
			want: clitest.Answer{Code: 1, Stderr: "error: p is activated, and the assessor has not looked at it within 20ms\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PolicyOf("p", func(p *v1alpha1.RemediationPolicy) { p.Generation, p.Status.ObservedGeneration = 4, 3 }))}
			f.Hooks.Watch = func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
				current := &v1alpha1.RemediationPolicy{}
				if err := api.Get(ctx, client.ObjectKey{Name: "p"}, current); err != nil {
					return nil, err
				}
				w := watch.NewFakeWithChanSize(1, false)
				if event := tc.event(current); event != nil {
					w.Action(event.Type, event.Object)
				}
				return w, nil
			}
			got := f.Run(t, verbs, "", append([]string{"policy", "activate", "p", "--yes"}, tc.args...)...)
			after := "" // what was announced before
			for _, beginning := range []string{"error: ", "Warning: "} {
				if _, text, found := strings.Cut(got.Stderr, beginning); found {
					after = beginning + text
				}
			}
			got.Stderr = after
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
