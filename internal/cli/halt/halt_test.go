// SPDX-License-Identifier: Apache-2.0

package halt

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestHalt(t *testing.T) {
	halted := func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "INC-9"}
	}
	ledgers := []client.Object{
		clitest.LedgerFor("production", actions.ScopeEnvironment), clitest.LedgerFor("staging", actions.ScopeEnvironment, halted), clitest.LedgerFor("plumbline-cluster", actions.ScopeCluster),
	}
	cases := map[string]struct {
		objects []client.Object
		args    []string
		want    clitest.Answer
		sent    map[string]*v1alpha1.LedgerHalt
	}{
		"an Environment": {
			args: []string{"halt", "production", "--reason", "INC-9"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/production halted\n"},
			sent: map[string]*v1alpha1.LedgerHalt{"production": {RequestedBy: "alice", Reason: "INC-9"}},
		},
		"the cluster": {
			args: []string{"halt", "--all-environments", "--reason", "INC-9"}, want: clitest.Answer{Stdout: "cluster halted\n"},
			sent: map[string]*v1alpha1.LedgerHalt{"plumbline-cluster": {RequestedBy: "alice", Reason: "INC-9"}},
		},
		"one that is halted already": {
			args: []string{"halt", "staging", "--reason", "x"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/staging is halted already, by bob: INC-9\n"},
		},
		"two, one of which has no ledger": {
			args: []string{"halt", "production", "nope", "--reason", "x"},
			want: clitest.Answer{
				Code: 1, Stdout: "environment.plumbline.dev/production halted\n",
				Stderr: "error: Environment nope has no RemediationLedger: the executor makes it when it first runs, and until then there is no remediation\n",
			},
			sent: map[string]*v1alpha1.LedgerHalt{"production": {RequestedBy: "alice", Reason: "x"}},
		},
		"a dry run": {
			args: []string{"halt", "production", "--reason", "x", "--dry-run"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/production halted (dry run)\n"},
		},
		"a server dry run": {
			args: []string{"halt", "production", "--reason", "x", "--dry-run=server"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/production halted (server dry run)\n"},
		},
		"taken back": {
			args: []string{"resume", "staging"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/staging resumed\n"},
			sent: map[string]*v1alpha1.LedgerHalt{"staging": nil},
		},
		"nothing to take back": {
			args: []string{"resume", "production"}, want: clitest.Answer{Stdout: "environment.plumbline.dev/production is not halted\n"},
		},
		"without a reason": {
			args: []string{"halt", "production"},
			want: clitest.Answer{Code: 1, Stderr: "error: give the cause with --reason: users that find drift without remediation will ask\nSee 'kubectl plumbline halt -h' for help and examples\n"},
		},
		"of nothing": {
			args: []string{"resume"},
			want: clitest.Answer{Code: 1, Stderr: "error: name Environments, or the whole cluster with --all-environments\nSee 'kubectl plumbline resume -h' for help and examples\n"},
		},
		"a ledger that somebody else made beside": {
			objects: clitest.ObjectsOf(clitest.LedgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) { l.Namespace = "shop" })),
			args:    []string{"halt", "production", "--reason", "x"},
			want:    clitest.Answer{Code: 1, Stderr: "error: there are installations in the namespaces plumbline-system, shop: say in which of them Plumbline runs, with --system-namespace\n"},
		},
		"the same, and told which": {
			objects: clitest.ObjectsOf(clitest.LedgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) { l.Namespace = "shop" })),
			args:    []string{"halt", "production", "--reason", "x", "--system-namespace", "plumbline-system"},
			want:    clitest.Answer{Stdout: "environment.plumbline.dev/production halted\n"},
			sent:    map[string]*v1alpha1.LedgerHalt{"production": {RequestedBy: "alice", Reason: "x"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent := map[string]*v1alpha1.LedgerHalt{}
			f := clitest.Cluster{Objects: slices.Concat(ledgers, tc.objects)}
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				var o client.PatchOptions
				o.ApplyOptions(options)
				err := api.Patch(ctx, object, patch, options...)
				if err == nil && len(o.DryRun) == 0 {
					sent[object.GetName()] = object.(*v1alpha1.RemediationLedger).Spec.Halt
				}
				return err
			}
			got := f.Run(t, verbs, "", tc.args...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.sent == nil {
				tc.sent = map[string]*v1alpha1.LedgerHalt{}
			}
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// A halt is taken back by the verb that plans and releases have for a pause. The word of the REST API works as well.
func TestAHaltIsTakenBackWithoutAWordOfItsOwn(t *testing.T) {
	for _, verb := range []string{"resume", "unhalt"} {
		halted := clitest.LedgerFor("staging", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) { l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob"} })
		want := clitest.Answer{Stdout: "environment.plumbline.dev/staging resumed\n"}
		if diff := cmp.Diff(want, clitest.Cluster{Objects: clitest.ObjectsOf(halted)}.Run(t, verbs, "", verb, "staging")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", verb, diff)
		}
	}
}
