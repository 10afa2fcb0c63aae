// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestPlanControl_Asks(t *testing.T) {
	manual := func(p *v1alpha1.RemediationPlan) { p.Spec.Plan.Trigger = v1alpha1.TriggerManual }
	paused := []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanPaused), clitest.Asked(v1alpha1.PlanPause, "bob", "INC-9")}
	cases := map[string]struct {
		plan   []func(*v1alpha1.RemediationPlan)
		args   []string
		code   int
		stdout string
		stderr string                // part of it
		want   *v1alpha1.PlanControl // stored; nil: nothing was sent
	}{
		"a running plan is paused, with a reason": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanRunning)}, args: []string{"pause", "--reason", "INC-9"},
			stdout: "shop/p asked to pause\n", want: &v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice", Reason: "INC-9"},
		},
		"a plan that nobody has taken yet is canceled": {
			args: []string{"cancel", "--yes"}, stdout: "shop/p asked to cancel\n", want: &v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"},
		},
		"a pause is turned into a cancellation, and its reason goes": {
			plan: paused, args: []string{"cancel", "--yes"}, stdout: "shop/p asked to cancel\n", want: &v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"},
		},
		"a paused plan is resumed by taking the verb away": {
			plan: paused, args: []string{"resume"}, stdout: "shop/p asked to resume\n", want: &v1alpha1.PlanControl{RequestedBy: "alice"},
		},
		"a manual one is resumed, and the user hears that it waits for execute": {
			plan: append(paused, manual), args: []string{"resume"}, stdout: "shop/p asked to resume\n", want: &v1alpha1.PlanControl{RequestedBy: "alice"},
			stderr: "Warning: shop/p begins by hand alone: to go on with it, use kubectl plumbline plan execute p\n",
		},
		"one that a person asked for begins without execute": {
			plan: append(paused, manual, func(p *v1alpha1.RemediationPlan) { p.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "u"} }),
			args: []string{"resume"}, stdout: "shop/p asked to resume\n", want: &v1alpha1.PlanControl{RequestedBy: "alice"},
		},
		"a plan that waits for its window is executed": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.Deferred("the window is closed", nil)}, args: []string{"execute"},
			stdout: "shop/p asked to execute\n", want: &v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"},
		},
		"a paused plan is executed": {
			plan: paused, args: []string{"execute"}, stdout: "shop/p asked to execute\n", want: &v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"},
		},
		"a client dry run sends nothing": {
			args: []string{"pause", "--dry-run"}, stdout: "shop/p paused (dry run)\n",
		},
		"a server dry run stores nothing": {
			args: []string{"pause", "--dry-run=server"}, stdout: "shop/p paused (server dry run)\n",
		},
		"what is paused already is so": {
			plan: paused, args: []string{"pause"}, stdout: "shop/p is paused already, by bob\n",
		},
		"what is canceled already is so": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanCanceled)}, args: []string{"cancel", "--yes"}, stdout: "shop/p is canceled already\n",
		},
		"what runs already is not executed": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanRunning)}, args: []string{"execute"}, stdout: "shop/p is running already\n",
		},
		"what is to be executed already is so": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.Asked(v1alpha1.PlanExecute, "bob", "")}, args: []string{"execute"}, stdout: "shop/p is to be executed already, as bob asked\n",
		},
		"a plan that has ended cannot be paused": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanSucceeded)}, args: []string{"pause"}, code: 1,
			stderr: "error: shop/p was not paused: it has ended as Succeeded 4m ago\n",
		},
		"nor canceled": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanFailed)}, args: []string{"cancel", "--yes"}, code: 1,
			stderr: "error: shop/p was not canceled: it has ended as Failed 4m ago\n",
		},
		"a cancellation is not taken back": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanRunning), clitest.Asked(v1alpha1.PlanCancel, "bob", "")}, args: []string{"resume"}, code: 1,
			stderr: "error: shop/p was not resumed: bob has asked to cancel it, and that is not taken back\n",
		},
		"a plan that a halt ends goes on ending": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.Eventful}, args: []string{"execute"}, code: 1,
			stderr: "error: shop/p was not executed: it is ending as Canceled\n",
		},
		"what is not paused is not resumed": {
			plan: []func(*v1alpha1.RemediationPlan){clitest.InPhase(v1alpha1.PlanRunning)}, args: []string{"resume"}, code: 1,
			stderr: "error: shop/p was not resumed: it is not paused\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := clitest.PlanOf("p", tc.plan...)
			f := clitest.Cluster{Objects: clitest.ObjectsOf(plan)}
			var stored *v1alpha1.PlanControl
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				var o client.PatchOptions
				o.ApplyOptions(options)
				err := api.Patch(ctx, object, patch, options...)
				if err == nil && len(o.DryRun) == 0 {
					stored = &object.(*v1alpha1.RemediationPlan).Spec.Control
				}
				return err
			}
			args := append([]string{"plan", tc.args[0], "p", "--wait=false"}, tc.args[1:]...)
			got := f.Run(t, verbs, "", args...)
			if got.Code != tc.code || got.Stdout != tc.stdout || !strings.Contains(got.Stderr, tc.stderr) || (tc.stderr == "" && got.Stderr != "") {
				t.Errorf("%q gave %+v", args, got)
			}
			if diff := cmp.Diff(tc.want, stored); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanControl_SeveralPlansAreEachAnsweredFor(t *testing.T) {
	f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PlanOf("a"), clitest.PlanOf("b", clitest.InPhase(v1alpha1.PlanFailed)))}
	got := f.Run(t, verbs, "", "plan", "cancel", "a", "b", "c", "--yes", "--wait=false")
	want := clitest.Answer{
		Code: 1, Stdout: "shop/a asked to cancel\n",
		Stderr: "error: shop/b was not canceled: it has ended as Failed 4m ago\nError from server (NotFound): remediationplans.plumbline.dev \"c\" not found\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// racingPlan answers the first n patches with a conflict, after between has
// changed the plan.
func racingPlan(n int, between func(*v1alpha1.RemediationPlan)) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if n--; n < 0 {
				return api.Patch(ctx, object, patch, options...)
			}
			current := &v1alpha1.RemediationPlan{}
			if err := api.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			between(current)
			status := current.Status
			if err := api.Update(ctx, current); err != nil {
				return err
			}
			current.Status = status
			if err := api.Status().Update(ctx, current); err != nil {
				return err
			}
			return apierrors.NewConflict(schema.GroupResource{Group: "plumbline.dev", Resource: "remediationplans"}, object.GetName(), nil)
		},
	}
}

func TestPlanControl_OnlyWhatWasShown(t *testing.T) {
	cases := map[string]struct {
		hooks interceptor.Funcs
		want  clitest.Answer
	}{
		"status writes in between are retried": {
			racingPlan(7, func(p *v1alpha1.RemediationPlan) { p.Status.Epoch++ }), clitest.Answer{Stdout: "shop/p asked to pause\n"},
		},
		"another person's request in between wins": {
			racingPlan(1, clitest.Asked(v1alpha1.PlanCancel, "carol", "")),
			clitest.Answer{Code: 1, Stderr: "error: shop/p was not paused: carol has asked to cancel it since it was shown\n"},
		},
		"an end in between is told": {
			racingPlan(1, func(p *v1alpha1.RemediationPlan) { p.Status.Phase = v1alpha1.PlanSucceeded }),
			clitest.Answer{Code: 1, Stderr: "error: shop/p was not paused: it has ended as Succeeded\n"},
		},
		"endless conflicts end": {
			racingPlan(1<<30, func(p *v1alpha1.RemediationPlan) { p.Status.Epoch++ }),
			clitest.Answer{Code: 1, Stderr: "error: shop/p was not paused: it was written by others 100 times in a row; try again\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PlanOf("p", clitest.InPhase(v1alpha1.PlanRunning))), Hooks: tc.hooks}
			if diff := cmp.Diff(tc.want, f.Run(t, verbs, "", "plan", "pause", "p", "--wait=false")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanControl_WaitsForTheExecutor gives each wait one event about the plan.
func TestPlanControl_WaitsForTheExecutor(t *testing.T) {
	becomes := func(phase v1alpha1.PlanPhase, why string) func(*v1alpha1.RemediationPlan) {
		return func(p *v1alpha1.RemediationPlan) {
			p.Status.Phase, p.Status.DeferralReason, p.Status.ObservedGeneration = phase, why, p.Generation
		}
	}
	cases := map[string]struct {
		verb  string
		event func(*v1alpha1.RemediationPlan)
		code  int
		want  string
	}{
		"paused":                         {"pause", becomes(v1alpha1.PlanPaused, ""), 0, "shop/p paused\n"},
		"ended before the pause":         {"pause", becomes(v1alpha1.PlanSucceeded, ""), 1, "shop/p was not paused: it ended as Succeeded before"},
		"canceled":                       {"cancel", becomes(v1alpha1.PlanCanceled, ""), 0, "shop/p canceled\n"},
		"ended before the cancellation":  {"cancel", becomes(v1alpha1.PlanFailed, ""), 1, "shop/p was not canceled: it ended as Failed before"},
		"executed, and runs":             {"execute", becomes(v1alpha1.PlanRunning, ""), 0, "shop/p executed: Running\n"},
		"executed, and a limit holds it": {"execute", becomes(v1alpha1.PlanDeferred, "10 of 10 in the last hour"), 0, "shop/p executed; it waits: 10 of 10 in the last hour\n"},
		"executed, and has ended":        {"execute", becomes(v1alpha1.PlanPartialSuccess, ""), 0, "shop/p executed, and ended as PartialSuccess\n"},
		"somebody asked otherwise since": {"pause", clitest.Asked(v1alpha1.PlanExecute, "carol", ""), 1, "shop/p was not paused: carol has asked to execute it since"},
		"somebody resumed it since":      {"pause", clitest.Asked("", "carol", ""), 1, "shop/p was not paused: carol has resumed it since"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// The fake counts no generations: the executor has not looked since.
			unseen := func(p *v1alpha1.RemediationPlan) { p.Status.ObservedGeneration = 0 }
			f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PlanOf("p", clitest.Deferred("the window is closed", nil), unseen))}
			f.Hooks.Watch = func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
				current := &v1alpha1.RemediationPlan{}
				if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "p"}, current); err != nil {
					return nil, err
				}
				tc.event(current)
				w := watch.NewFakeWithChanSize(1, false)
				w.Modify(current)
				return w, nil
			}
			got := f.Run(t, verbs, "y\n", "plan", tc.verb, "p")
			if got.Code != tc.code || !strings.Contains(got.Stdout+got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestPlanControl_SaysWhenItWaitedInVain(t *testing.T) {
	cases := map[string]struct {
		plan *v1alpha1.RemediationPlan
		want string
	}{
		"no executor runs":                {clitest.PlanOf("p"), "not paused within 20ms: no executor has taken it; is one running?"},
		"an executor has other things to": {clitest.PlanOf("p", clitest.Deferred("the window is closed", nil)), "not paused within 20ms: it is Deferred, the window is closed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: clitest.ObjectsOf(tc.plan)}.Run(t, verbs, "", "plan", "pause", "p", "--timeout", "20ms")
			if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	t.Run("the server does not let itself be watched", func(t *testing.T) {
		f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PlanOf("p"))}
		f.Hooks.Watch = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, errors.New("no watches today")
		}
		got := f.Run(t, verbs, "", "plan", "pause", "p")
		if want := "error: shop/p: asked for; waiting for it: no watches today\n"; got.Code != 1 || got.Stderr != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	})
}

// A cancellation is final, so a person confirms it.
func TestPlanCancel_EndsNoPlanWithoutAnAnswer(t *testing.T) {
	const question = "Cancel p, q? A cancellation is final, and the policy leaves the drift of the plan alone. (y/N): "
	cases := map[string]struct {
		stdin  string
		args   []string
		want   clitest.Answer
		stored v1alpha1.PlanVerb
	}{
		"a person says yes": {stdin: "y\n", want: clitest.Answer{Stdout: "shop/p asked to cancel\nshop/q asked to cancel\n", Stderr: question}, stored: v1alpha1.PlanCancel},
		"a person says no":  {stdin: "n\n", want: clitest.Answer{Code: 1, Stderr: question + "error: no plan was canceled\n"}},
		"a script": {
			want: clitest.Answer{Code: 1, Stderr: "error: no plan was canceled: canceling a plan needs a confirmation, and standard input is no terminal; use --yes\n"},
		},
		"a script with --yes": {args: []string{"-y"}, want: clitest.Answer{Stdout: "shop/p asked to cancel\nshop/q asked to cancel\n"}, stored: v1alpha1.PlanCancel},
		"a dry run":           {args: []string{"--dry-run"}, want: clitest.Answer{Stdout: "shop/p canceled (dry run)\nshop/q canceled (dry run)\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.PlanOf("p"), clitest.PlanOf("q"))}
			var stored v1alpha1.PlanVerb
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				err := api.Patch(ctx, object, patch, options...)
				stored = object.(*v1alpha1.RemediationPlan).Spec.Control.Verb
				return err
			}
			got := f.Run(t, verbs, tc.stdin, append([]string{"plan", "cancel", "p", "q", "--wait=false"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if stored != tc.stored {
				t.Errorf("the verb %q is stored, want %q", stored, tc.stored)
			}
		})
	}
}
