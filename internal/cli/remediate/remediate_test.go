// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func rollsBack(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionRollback }

// answering has an assessor that answers each request so, at once. stored gets the last
// request that was stored.
func answering(f clitest.Cluster, answer v1alpha1.RemediationRequestStatus, stored *v1alpha1.RemediationRequest) clitest.Cluster {
	f.Hooks.Create = func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
		request, asks := object.(*v1alpha1.RemediationRequest)
		if !asks {
			return clitest.AnswerWhoami(ctx, api, object, options...)
		}
		var o client.CreateOptions
		o.ApplyOptions(options)
		if len(o.DryRun) > 0 {
			return nil
		}
		request.Name = request.GenerateName + "x"
		if err := api.Create(ctx, request, options...); err != nil {
			return err
		}
		*stored = *request.DeepCopy()
		answered := request.DeepCopy()
		answered.Status = answer
		return api.Status().Update(ctx, answered)
	}
	return f
}

func TestRemediate_Asks(t *testing.T) {
	acts := clitest.ActiveBy("bob")
	planned := v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestPlanned, PlanName: "p"}
	refused := func(reason, message string) v1alpha1.RemediationRequestStatus {
		return v1alpha1.RemediationRequestStatus{
			Outcome: v1alpha1.RequestRefused, LeftOut: []v1alpha1.LeftOut{{BaselineName: "deployments.apps.web", Reason: reason, Message: message}},
		}
	}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		plan   func(*v1alpha1.RemediationPlan)
		answer v1alpha1.RemediationRequestStatus
		args   []string
		code   int
		stdout string
		stderr string
		// revision that was asked for; "-" where nothing was stored.
		revision string
	}{
		"a plan is made and runs": {
			plan: clitest.InPhase(v1alpha1.PlanRunning), answer: planned, args: []string{"deployment/web"},
			stdout: "shop/deployment.apps/web is in plan p\nshop/p begun: Running\n",
		},
		"a plan is made and has ended": {
			plan: clitest.InPhase(v1alpha1.PlanSucceeded), answer: planned, args: []string{"deployment", "web"},
			stdout: "shop/deployment.apps/web is in plan p\nshop/p begun, and ended as Succeeded\n",
		},
		"a plan is made and waits for a limit": {
			plan: clitest.Deferred("MaxPerHour: 5 of 5", nil), answer: planned, args: []string{"deployment/web"},
			stdout: "shop/deployment.apps/web is in plan p\nshop/p begun; it waits: MaxPerHour: 5 of 5\n",
		},
		"a plan that fails is a failure": {
			plan: clitest.InPhase(v1alpha1.PlanFailed), answer: planned, args: []string{"deployment/web"}, code: 1,
			stdout: "shop/deployment.apps/web is in plan p\n", stderr: "error: shop/p: begun, and ended as Failed\n",
		},
		"a plan that somebody cancels meanwhile is one": {
			plan: clitest.InPhase(v1alpha1.PlanCanceled), answer: planned, args: []string{"deployment/web"}, code: 1,
			stdout: "shop/deployment.apps/web is in plan p\n", stderr: "error: shop/p: begun, and ended as Canceled\n",
		},
		"a plan that no executor takes": {
			answer: planned, args: []string{"deployment/web", "--timeout", "50ms"}, code: 1,
			stdout: "shop/deployment.apps/web is in plan p\n", stderr: "error: shop/p is made, and not begun within 50ms: no executor has taken it; is one running?\n",
		},
		"a limit that holds is told": {
			answer: refused("BlastRadius", "one operation has at most 1 target, and it is taken"), args: []string{"deployment/web"}, code: 1,
			stderr: "error: shop/deployment.apps/web is not remediated: BlastRadius: one operation has at most 1 target, and it is taken\n",
		},
		"a plan that has it is named, and how to begin it": {
			answer: refused("UnderWay", "plan q has it"), args: []string{"deployment/web"}, code: 1,
			stderr: "error: shop/deployment.apps/web is not remediated: UnderWay: plan q has it; to begin that plan now, use \"kubectl plumbline plan execute\"\n",
		},
		"what the policy refuses as a whole is told": {
			answer: v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused, Message: "the request was not answered within 10m0s"},
			args:   []string{"deployment/web"}, code: 1, stderr: "error: request shop/remediate-x was refused: the request was not answered within 10m0s\n",
		},
		"an assessor that does not answer": {
			args: []string{"deployment/web", "--timeout", "50ms"}, code: 1,
			stderr: "error: request shop/remediate-x stands, and the assessor has not answered it within 50ms; is one running?\n",
		},
		"without a wait the request is named": {
			args: []string{"deployment/web", "--wait=false"}, stdout: "shop/deployment.apps/web remediation requested as remediate-x\n",
		},
		"a server dry run stores nothing": {
			args: []string{"deployment/web", "--dry-run=server"}, stdout: "shop/deployment.apps/web remediation requested (server dry run)\n", revision: "-",
		},
		"an object beside one that has not drifted": {
			args: []string{"deployment/web", "deployment/calm", "--wait=false"}, code: 1,
			stdout: "shop/deployment.apps/web remediation requested as remediate-x\n", stderr: "error: shop/deployment.apps/calm is not remediated: it is in sync: there is no drift to remediate\n",
		},
		"a rollback to a chosen state": {
			policy: []func(*v1alpha1.RemediationPolicy){rollsBack}, args: []string{"deployment/web", "--to", "3", "--wait=false"},
			stdout: "shop/deployment.apps/web remediation requested as remediate-x\n", revision: "deployments.apps.web-3",
		},
		"a state that was never authorized": {
			policy: []func(*v1alpha1.RemediationPolicy){rollsBack}, args: []string{"deployment/web", "--to", "9"}, code: 1, revision: "-",
			stderr: "error: nothing was requested: --to: revision 9 of deployment.apps/web does not exist or is no longer kept: \"kubectl plumbline history deployment.apps/web\" lists them\n",
		},
		"a chosen state of a policy that reconciles": {
			args: []string{"deployment/web", "--to", "3"}, code: 1, revision: "-",
			stderr: "error: nothing was requested: --to chooses a revision for a Rollback, and spec.action of policy production is Reconcile: leave --to out, or name another policy\n",
		},
		"an object that no guard selects": {
			args: []string{"deployment/nope"}, code: 1, revision: "-",
			stderr: "error: deployment.apps/nope in namespace shop has no Baseline: no guard selects it, or the assessor has not seen it yet\n",
		},
		"a policy that is not there": {
			args: []string{"deployment/web", "--policy", "nope"}, code: 1, revision: "-",
			stderr: "error: nothing was requested: spec.policyName: there is no RemediationPolicy \"nope\": name one that \"kubectl get remediationpolicies\" lists\n",
		},
		"a policy that observes": {
			policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeObserveOnly }},
			args:   []string{"deployment/web"}, code: 1, revision: "-",
			stderr: "error: nothing was requested: spec.mode of policy production is ObserveOnly, and an active policy alone writes: run \"kubectl plumbline policy activate production\", or name another policy\n",
		},
		"a policy that is halted": {
			policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeHalted }},
			args:   []string{"deployment/web", "--dry-run"}, code: 1, revision: "-",
			stderr: "error: nothing was requested: spec.mode of policy production is Halted, and an active policy alone writes: run \"kubectl plumbline policy activate production\", or name another policy\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Shop(t, append([]func(*v1alpha1.RemediationPolicy){acts, clitest.TooOld}, tc.policy...)...)
			plan := clitest.PlanOf("p")
			if tc.plan != nil {
				tc.plan(plan)
			}
			f.Objects = append(f.Objects, plan)
			var stored v1alpha1.RemediationRequest
			args := append([]string{"remediate"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--policy") {
				args = append(args, "--policy", "production")
			}
			got := answering(f, tc.answer, &stored).Run(t, verbs, "", append(args, "--reason", "INC-9")...)
			if diff := cmp.Diff(clitest.Answer{Code: tc.code, Stdout: tc.stdout, Stderr: tc.stderr}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			web := f.Objects[0].(*v1alpha1.Baseline)
			want := v1alpha1.RemediationRequestSpec{
				PolicyName: "production", RequestedBy: "alice", RequestedByGroups: []string{"sre"}, Reason: "INC-9",
				Targets: []v1alpha1.RequestedTarget{{BaselineName: web.Name, DriftedHash: web.Status.Observed.Hash, Revision: tc.revision}},
			}
			if tc.revision == "-" {
				want = v1alpha1.RemediationRequestSpec{}
			}
			if diff := cmp.Diff(want, stored.Spec); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// The page of the plugin shows this output.
func TestRemediate_TellsThePlanAndTheRefusalOfEachObject(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("bob"))
	f.Objects = append(f.Objects,
		clitest.BaselineOf("cart", clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "bob", time.Hour))),
		clitest.PlanOf("production-3f9c2a61d0", clitest.InPhase(v1alpha1.PlanRunning)))
	answer := v1alpha1.RemediationRequestStatus{
		Outcome: v1alpha1.RequestPlanned, PlanName: "production-3f9c2a61d0",
		LeftOut: []v1alpha1.LeftOut{{BaselineName: "deployments.apps.cart", Reason: "BlastRadius", Message: "one operation has at most 1 target, and it is taken"}},
	}
	var stored v1alpha1.RemediationRequest
	got := answering(f, answer, &stored).Run(t, verbs, "", "remediate", "deployment/web", "deployment/cart", "--policy", "production")
	if got.Code != 1 {
		t.Errorf("exit code %d, want 1 for the refusal", got.Code)
	}
	golden.Check(t, filepath.Join("testdata", "asks.txt"), got.Stdout+got.Stderr)
}

func TestRemediate_Usage(t *testing.T) {
	many := []string{"deployment"}
	for i := range actions.MaxRequested + 1 {
		many = append(many, "d"+string(rune('a'+i)))
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing named":        {[]string{"--policy", "p"}, "name objects as TYPE/NAME"},
		"a type alone":         {[]string{"deployment", "--policy", "p"}, "name objects as TYPE/NAME"},
		"no policy":            {[]string{"deployment/web"}, "name the policy with --policy"},
		"too many objects":     {append(many, "--policy", "p"), "a request has at most 10 objects, not 11"},
		"a revision of zero":   {[]string{"deployment/web", "--policy", "p", "--to", "0"}, "revisions are numbered from 1, not 0"},
		"a revision of two":    {[]string{"deployment", "web", "db", "--policy", "p", "--to", "3"}, "--to is about one object, and 2 are named"},
		"a negative wait":      {[]string{"deployment/web", "--policy", "p", "--timeout", "-1s"}, "--timeout must be greater than 0s, not -1s"},
		"a reason too long":    {[]string{"deployment/web", "--policy", "p", "--reason", strings.Repeat("x", invocation.MaxReason+1)}, "--reason has 257 characters, more than 256"},
		"an output of no kind": {[]string{"deployment/web", "--policy", "p", "-o", "wide"}, `output format "wide", allowed formats are: json,yaml`},
		"a dry run of no kind": {[]string{"deployment/web", "--policy", "p", "--dry-run=maybe"}, `invalid dry-run value (maybe)`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Shop(t).Run(t, verbs, "", append([]string{"remediate"}, tc.args...)...)
			if got.Code != 1 || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// Who may ask need not be one who may read policies or bodies.
func TestRemediate_LeavesToTheAssessorWhatTheUserMayNotRead(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("bob"), rollsBack)
	var stored v1alpha1.RemediationRequest
	f = answering(f, v1alpha1.RemediationRequestStatus{}, &stored)
	f.Hooks.Get = func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		switch object.(type) {
		case *v1alpha1.RemediationPolicy, *v1alpha1.BaselineRevision:
			return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev"}, key.Name, errors.New("no"))
		}
		return api.Get(ctx, key, object, options...)
	}
	got := f.Run(t, verbs, "", "remediate", "deployment/web", "--policy", "production", "--to", "2", "--wait=false")
	if got.Code != 0 || got.Stdout != "shop/deployment.apps/web remediation requested as remediate-x\n" {
		t.Errorf("got %+v", got)
	}
	if want := specguard.RevisionName("deployments.apps.web", 2); len(stored.Spec.Targets) != 1 || stored.Spec.Targets[0].Revision != want {
		t.Errorf("stored is %+v, want %s", stored.Spec, want)
	}
}

func TestRemediate_RefusedByTheAPIServer(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("bob"))
	f.Hooks.Create = func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if _, asks := object.(*v1alpha1.RemediationRequest); asks {
			return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "remediationrequests"}, "", errors.New(`User "alice" cannot create resource`))
		}
		return clitest.AnswerWhoami(ctx, api, object, options...)
	}
	got := f.Run(t, verbs, "", "remediate", "deployment/web", "--policy", "production")
	if got.Code != 1 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "Error from server (Forbidden): nothing was requested: remediationrequests.plumbline.dev is forbidden: User \"alice\" cannot create resource") {
		t.Errorf("got %+v", got)
	}
}

func TestRemediate_PreviewGolden(t *testing.T) {
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		code   int
	}{
		"preview": {},
		"preview-not-selected": {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) {
			p.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "ConfigMap"}}
		}}, code: 1},
		"preview-wrong-zone": {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) {
			p.Spec.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "22:00", End: "23:00", TimeZone: "Mars/Base"}}
		}}, code: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Shop(t, append([]func(*v1alpha1.RemediationPolicy){clitest.ActiveBy("bob"), clitest.TooOld}, tc.policy...)...)
			got := f.Run(t, verbs, "", "remediate", "deployment/web", "--policy", "production", "--dry-run")
			if got.Code != tc.code {
				t.Errorf("got %d", got.Code)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stderr+"--- stdout\n"+got.Stdout)
		})
	}
}
