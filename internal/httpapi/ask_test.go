// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// whenPatched answers a request as the controller does that it is for.
func whenPatched[T client.Object](answer func(T)) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if err := c.Patch(ctx, o, patch, opts...); err != nil {
			return err
		}
		if answered, is := o.DeepCopyObject().(T); is {
			answer(answered)
			return c.Status().Update(ctx, answered)
		}
		return nil
	}}
}

func TestAPlanIsAskedInTheNameOfTheCaller(t *testing.T) {
	phase := func(phase v1alpha1.PlanPhase) func(*v1alpha1.RemediationPlan) {
		return func(p *v1alpha1.RemediationPlan) {
			p.Status.Phase, p.Status.ObservedGeneration, p.Status.DeferralReason = phase, p.Generation, ""
		}
	}
	noAnswer := func(*v1alpha1.RemediationPlan) {}
	tests := map[string]struct {
		plan, verb, body string
		answer           func(*v1alpha1.RemediationPlan)
		prefer           string
		status           int
		control          v1alpha1.PlanControl
		shows            wire.Word[wire.PlanStatus]
	}{
		"a plan is executed":               {examplePlan, "execute", exampleReason, noAnswer, "", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice", Reason: "INC-9, agreed with ops"}, "deferred"},
		"a plan is paused":                 {examplePlan, "pause", "", noAnswer, "", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice"}, "deferred"},
		"a paused plan is resumed":         {"shop.paused", "resume", "{}", noAnswer, "", 202, v1alpha1.PlanControl{RequestedBy: "alice"}, "paused"},
		"a plan is canceled":               {examplePlan, "cancel", "", noAnswer, "", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}, "deferred"},
		"a caller sees the execution":      {examplePlan, "execute", "", phase(v1alpha1.PlanRunning), "wait=10", 200, v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"}, "running"},
		"a caller sees the pause":          {examplePlan, "pause", "", phase(v1alpha1.PlanPaused), "wait=10", 200, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice"}, "paused"},
		"a caller sees the end":            {examplePlan, "cancel", "", phase(v1alpha1.PlanCanceled), "wait=10", 200, v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}, "cancelled"},
		"a plan ends before its pause":     {examplePlan, "pause", "", phase(v1alpha1.PlanSucceeded), "wait=10", 409, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice"}, ""},
		"a plan that is paused is paused":  {"shop.paused", "pause", "", noAnswer, "", 200, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "bob"}, "paused"},
		"a caller does not wait long":      {examplePlan, "pause", "", noAnswer, "wait=1", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "alice"}, "deferred"},
		"a paused plan may be executed":    {"shop.paused", "execute", "", noAnswer, "", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"}, "paused"},
		"a plan is executed by its own id": {"2d6f9c3e-0000-4000-8000-000000000003", "execute", "", noAnswer, "", 202, v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"}, "deferred"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, whenPatched(tc.answer), shopAtWork(t)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, remediationPath+"/plans/"+tc.plan+"/"+tc.verb, tc.body, "Prefer", tc.prefer)
			if tc.status == http.StatusConflict {
				if p := a.wantProblem(w, wire.Refused, ""); p.Detail != "the plan ended as Succeeded before" {
					t.Errorf("it says %q", p.Detail)
				}
			} else if shown := want[wire.Plan](a, w, tc.status); shown.Status != tc.shows {
				t.Errorf("the plan is %s, want %s", shown.Status, tc.shows)
			}
			p := &v1alpha1.RemediationPlan{}
			name := map[bool]string{true: "paused", false: "production-4c1f9a0d2b"}[tc.plan == "shop.paused"]
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.control, p.Spec.Control); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// The request stands. A caller who may not watch learns so from a later GET.
func TestAWaitThatFailsDoesNotFailTheRequest(t *testing.T) {
	hooks := interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return nil, errors.New("you may not watch")
	}}
	a := newAnswers(t, newCluster(t, hooks, shopAtWork(t)...))
	want[wire.Plan](a, a.send(http.MethodPost, remediationPath+"/plans/"+examplePlan+"/pause", "", "Prefer", "wait=20"), http.StatusAccepted)
	if !strings.Contains(a.log.String(), "you may not watch") {
		t.Errorf("the log is %s", a.log.String())
	}
}

func TestAReleaseIsAskedInTheNameOfTheCaller(t *testing.T) {
	handled := func(refusal string) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Handled = &v1alpha1.HandledControl{RolloutControl: *r.Spec.Rollout.Control, Refusal: refusal}
		}
	}
	noAnswer := func(*v1alpha1.ABRelease) {}
	tests := map[string]struct {
		verb, body string
		answer     func(*v1alpha1.ABRelease)
		prefer     string
		status     int
		control    v1alpha1.RolloutControl
	}{
		"a run is started":                {"start", "", noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Start"}},
		"a run goes on":                   {"advance", "", noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Advance"}},
		"a run goes on to a stage":        {"advance", `{"stageNumber":2,"reason":"INC-9"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Advance", Stage: 2, Reason: "INC-9"}},
		"the canary is promoted":          {"promote", `{"variation":"B"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Promote", Variation: "next"}},
		"the stable one is promoted":      {"promote", `{"variation":"A"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Promote", Variation: "stable"}},
		"a stage is approved":             {"approve", `{"runNumber":2,"stageNumber":1,"reason":"INC-9"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Approve", Stage: 1, Reason: "INC-9"}},
		"the stage under way is approved": {"approve", "", noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Approve", Stage: 1}},
		"a stage is skipped":              {"skip", `{"runNumber":2,"stageNumber":1,"reason":"INC-9"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Skip", Stage: 1, Reason: "INC-9"}},
		"the stage under way is skipped":  {"skip", "", noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Skip", Stage: 1}},
		"a stage is tried again":          {"retry", `{"reason":"INC-9"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Retry", Reason: "INC-9"}},
		"a run is rolled back":            {"rollback", `{"reason":"INC-9"}`, noAnswer, "", 202, v1alpha1.RolloutControl{Verb: "Rollback", Reason: "INC-9"}},
		"a caller sees the rollback":      {"rollback", "", handled(""), "wait=10", 200, v1alpha1.RolloutControl{Verb: "Rollback"}},
		"a caller sees the refusal":       {"start", "", handled("the run has begun"), "wait=10", 409, v1alpha1.RolloutControl{Verb: "Start"}},
		"a caller does not wait for long": {"start", "", noAnswer, "wait=1", 202, v1alpha1.RolloutControl{Verb: "Start"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, whenPatched(tc.answer), shopAtWork(t)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, releasesPath+"/shop.web/"+tc.verb, tc.body, "Prefer", tc.prefer)
			if tc.status == http.StatusConflict {
				if p := a.wantProblem(w, wire.Refused, ""); p.Detail != "the run has begun" {
					t.Errorf("it says %q", p.Detail)
				}
			} else if shown := want[wire.Release](a, w, tc.status); shown.Name != "web" {
				t.Errorf("the release is %q", shown.Name)
			}
			r := &v1alpha1.ABRelease{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, r); err != nil {
				t.Fatal(err)
			}
			tc.control.Run, tc.control.RequestedBy = 2, "alice"
			if diff := cmp.Diff(&tc.control, r.Spec.Rollout.Control); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReleaseIsCreatedInTheNameOfTheCaller(t *testing.T) {
	tests := map[string]struct {
		change func(string) string
		by     string
		groups []string
	}{
		"a release without a rollout":   {func(body string) string { return body }, "", nil},
		"a release with a strategy":     {with(`"rolloutStrategy":{"name":"canary-10-25-50-100","stages":[]}`), "alice", []string{"sre", "dev"}},
		"a release with some groups":    {with(`"rollout":{"start":"manual","requestedByGroups":["sre"]}`), "alice", []string{"sre"}},
		"a release of another author":   {with(`"rollout":{"requestedBy":"bob"}`), "alice", []string{"sre", "dev"}},
		"a release of its Environment":  {with(`"environmentId":"e0000000-0000-4000-8000-000000000001"`), "", nil},
		"a release as a design has one": {with(`"tenantId":"d0000000-0000-4000-8000-000000000009","status":"running","completedAt":null,"createdBy":"bob","stages":[]`), "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, shop(t)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, releasesPath, tc.change(exampleReleaseBody), "Idempotency-Key", "k")
			created := want[wire.Release](a, w, http.StatusCreated)
			if got := w.Header().Get("Location"); got != releasesPath+"/shop.cart" || created.Variations[1].Variation != "next" {
				t.Errorf("%+v is at %q", created, got)
			}
			r := &v1alpha1.ABRelease{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "cart"}, r); err != nil {
				t.Fatal(err)
			}
			var author v1alpha1.Rollout
			if r.Spec.Rollout != nil {
				author = *r.Spec.Rollout
			}
			if diff := cmp.Diff(tc.groups, author.RequestedByGroups); author.RequestedBy != tc.by || diff != "" {
				t.Errorf("it is by %q, groups (-want +got):\n%s", author.RequestedBy, diff)
			}
			again := a.send(http.MethodPost, releasesPath, tc.change(exampleReleaseBody), "Idempotency-Key", "k")
			want[wire.Release](a, again, http.StatusCreated)
			other := strings.Replace(tc.change(exampleReleaseBody), `"A":90,"B":10`, `"A":80,"B":20`, 1)
			a.wantProblem(a.send(http.MethodPost, releasesPath, other, "Idempotency-Key", "k"), wire.Invalid, "header.Idempotency-Key")
		})
	}
}

// with adds fields to the body of a release.
func with(fields string) func(string) string {
	return func(body string) string { return strings.Replace(body, "{", "{"+fields+",", 1) }
}

func TestAStateIsAcceptedInTheNameOfTheCaller(t *testing.T) {
	request := v1alpha1.AcceptRequest{Hash: "pl2:aa", RequestedBy: "alice", RequestedByGroups: []string{"dev", "sre"}, Reason: "INC-9"}
	tests := map[string]struct {
		change func(*v1alpha1.Baseline)
		prefer string
		status int
		stored *v1alpha1.AcceptRequest
		detail string
	}{
		"a drifted object":              {func(*v1alpha1.Baseline) {}, "", 202, &request, ""},
		"an object that waits":          {func(*v1alpha1.Baseline) {}, "wait=1", 202, &request, ""},
		"a state that is authorized":    {func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash, b.Status.State = "pl2:aa", v1alpha1.StateInSync }, "", 200, nil, ""},
		"an object that is in sync":     {func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateInSync }, "", 409, nil, "is in sync: there is no change to accept"},
		"an object that was not read":   {func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateUnknown }, "", 409, nil, "its state is unknown, and only an observed state can be accepted"},
		"an object that changed since":  {func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "pl2:dd" }, "", 409, nil, "it changed since it was shown: now pl2:dd"},
		"an object that is not guarded": {func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateNotGuarded }, "", 409, nil, "no guard selects it any more: there is no state to accept"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, interceptor.Funcs{}, drift(t, tc.change)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, Prefix+"/baselines/"+exampleBaseline+"/accept", `{"hash":"pl2:aa","reason":"INC-9"}`, "Prefer", tc.prefer)
			if tc.status == http.StatusConflict {
				if p := a.wantProblem(w, wire.Refused, ""); p.Detail != tc.detail {
					t.Errorf("it says %q, want %q", p.Detail, tc.detail)
				}
			} else {
				want[wire.Baseline](a, w, tc.status)
			}
			if diff := cmp.Diff(tc.stored, storedBaseline(t, c).Spec.Accept); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// drift is the shop with another Baseline.
func drift(t *testing.T, change func(*v1alpha1.Baseline)) []client.Object {
	t.Helper()
	objects := shop(t)
	for _, o := range objects {
		if b, is := o.(*v1alpha1.Baseline); is {
			change(b)
		}
	}
	return objects
}

func storedBaseline(t *testing.T, c *inMemory) *v1alpha1.Baseline {
	t.Helper()
	b := &v1alpha1.Baseline{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "deployment-web"}, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnObjectIsCheckedNow(t *testing.T) {
	checked := func(b *v1alpha1.Baseline) { b.Status.CheckRequested = b.Annotations[v1alpha1.AnnotationCheckRequested] }
	tests := map[string]struct {
		change func(*v1alpha1.Baseline)
		answer func(*v1alpha1.Baseline)
		prefer string
		status int
	}{
		"a check is asked for":          {func(*v1alpha1.Baseline) {}, func(*v1alpha1.Baseline) {}, "", 202},
		"a caller sees the check":       {func(*v1alpha1.Baseline) {}, checked, "wait=10", 200},
		"an object that is retired":     {func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateRetired }, checked, "", 409},
		"an object that is not guarded": {func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateNotGuarded }, checked, "", 409},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, whenPatched(tc.answer), drift(t, tc.change)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, Prefix+"/baselines/"+exampleBaseline+"/check", "", "Prefer", tc.prefer)
			if w.Code != tc.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tc.status)
			}
			asked := storedBaseline(t, c).Annotations[v1alpha1.AnnotationCheckRequested]
			if (asked != "") != (tc.status != http.StatusConflict) {
				t.Errorf("the annotation is %q", asked)
			}
		})
	}
}
