// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const executePath = remediationPath + "/execute"

// driftedIn makes drifted Baselines of a namespace.
func driftedIn(namespace string, count int) (all []client.Object) {
	for i := range count {
		b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("b%d", i)}}
		b.UID = uidOf(namespace, i)
		b.Status = v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, Observed: v1alpha1.ObservedState{Hash: fmt.Sprintf("pl2:%d", i)}}
		all = append(all, b)
	}
	return all
}

func uidOf(namespace string, i int) types.UID {
	return types.UID(fmt.Sprintf("b%07x-0000-4000-8000-%012d", len(namespace), i))
}

// executeBody asks to put objects back, each by NAMESPACE.NAME or by its id.
func executeBody(t *testing.T, targets ...string) string {
	t.Helper()
	raw, err := json.Marshal(wire.ExecuteRequest{PolicyID: examplePolicy, Targets: targets, ReasonRequest: wire.ReasonRequest{Reason: "INC-9"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func targetsIn(namespace string, count int) (targets []string) {
	for i := range count {
		targets = append(targets, fmt.Sprintf("%s.b%d", namespace, i))
	}
	return targets
}

// requestsIn lists the requests of a cluster, with the names of their targets.
func requestsIn(t *testing.T, c *inMemory) map[string][]string {
	t.Helper()
	list := &v1alpha1.RemediationRequestList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, r := range list.Items {
		if r.Spec.RequestedBy != "alice" || r.Spec.Reason != "INC-9" || r.Spec.PolicyName != examplePolicy {
			t.Errorf("%s is %+v", r.Name, r.Spec)
		}
		for _, target := range r.Spec.Targets {
			found[r.Namespace] = append(found[r.Namespace], target.BaselineName+" "+target.DriftedHash)
		}
	}
	return found
}

func TestObjectsAreAskedToBePutBackInTheNameOfTheCaller(t *testing.T) {
	objects := append(append(shop(t), driftedIn("shop", 12)...), driftedIn("banks", 1)...)
	for name, targets := range map[string][]string{
		"by name": append(targetsIn("shop", 12), "banks.b0"),
		"by id":   append(append([]string{string(uidOf("shop", 0))}, targetsIn("shop", 12)[1:]...), string(uidOf("banks", 0))),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, objects...)
			a := newAnswers(t, c)
			got := want[wire.Execution](a, a.send(http.MethodPost, executePath, executeBody(t, targets...)), http.StatusAccepted)
			var sizes []int
			for _, r := range got.Requests {
				sizes = append(sizes, len(r.BaselineNames))
			}
			if diff := cmp.Diff([]int{10, 2, 1}, sizes); diff != "" || got.PolicyName != examplePolicy {
				t.Errorf("%+v, sizes (-want +got):\n%s", got, diff)
			}
			stored := requestsIn(t, c)
			if len(stored["shop"]) != 12 || cmp.Diff([]string{"b0 pl2:0"}, stored["banks"]) != "" {
				t.Errorf("stored is %v", stored)
			}
		})
	}
}

// The first request has succeeded, so its objects are in sync when the answer that was lost is asked for again.
func TestARepeatFindsItsRequestsAfterTheyHaveSucceeded(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, append(shop(t), driftedIn("shop", 2)...)...)
	a := newAnswers(t, c)
	body := executeBody(t, targetsIn("shop", 2)...)
	first := want[wire.Execution](a, a.send(http.MethodPost, executePath, body, "Idempotency-Key", "k"), http.StatusAccepted)
	for _, o := range driftedIn("shop", 2) {
		b := &v1alpha1.Baseline{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), b); err != nil {
			t.Fatal(err)
		}
		b.Status.State = v1alpha1.StateInSync
		if err := c.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	again := want[wire.Execution](a, a.send(http.MethodPost, executePath, body, "Idempotency-Key", "k"), http.StatusAccepted)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +repeat):\n%s", diff)
	}
	a.wantProblem(a.send(http.MethodPost, executePath, executeBody(t, "shop.b1"), "Idempotency-Key", "k"), wire.Invalid, "header.Idempotency-Key")
	for name, key := range map[string]string{"another key": "l", "no key": ""} {
		p := a.wantProblem(a.send(http.MethodPost, executePath, body, "Idempotency-Key", key), wire.Refused, "")
		if len(p.Errors) != 2 || p.Errors[1] != (wire.FieldError{Location: "body.targets[1]", Message: "it is in sync: there is no drift to remediate"}) {
			t.Errorf("%s: %+v", name, p.Errors)
		}
	}
	if stored := requestsIn(t, c); len(stored["shop"]) != 2 {
		t.Errorf("stored is %v", stored)
	}
}

// A client that gives up early sends the request again while the first one is under way.
func TestRequestsAtOnceWithOneKeyMakeOneObject(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, append(shop(t), driftedIn("shop", 2)...)...)
	a, body := newAnswers(t, c), executeBody(t, targetsIn("shop", 2)...)
	const callers = 8
	answers := make(chan string, callers)
	for range callers {
		go func() { answers <- a.send(http.MethodPost, executePath, body, "Idempotency-Key", "k").Body.String() }()
	}
	first := <-answers
	for range callers - 1 {
		if again := <-answers; again != first {
			t.Errorf("the answers are %s and %s", first, again)
		}
	}
	if stored := requestsIn(t, c); len(stored["shop"]) != 2 {
		t.Errorf("stored is %v", stored)
	}
}

func TestACallerWaitsForTheAnswerOfTheAssessor(t *testing.T) {
	tests := map[string]struct {
		answer v1alpha1.RemediationRequestStatus
		status int
		want   wire.Word[v1alpha1.RequestOutcome]
	}{
		"a plan":    {v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestPlanned, PlanName: "p", LeftOut: []v1alpha1.LeftOut{{BaselineName: "b1", Reason: "Quarantined"}}}, 200, "planned"},
		"a refusal": {v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused, Message: "of another Environment"}, 200, "refused"},
		"no answer": {v1alpha1.RemediationRequestStatus{}, 202, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := c.Create(ctx, o, opts...); err != nil {
					return err
				}
				answered := o.DeepCopyObject().(*v1alpha1.RemediationRequest)
				answered.Status = tc.answer
				return c.Status().Update(ctx, answered)
			}}
			a := newAnswers(t, newCluster(t, answers, append(shop(t), driftedIn("shop", 2)...)...))
			got := want[wire.Execution](a, a.send(http.MethodPost, executePath, executeBody(t, targetsIn("shop", 2)...), "Prefer", "wait=1"), tc.status)
			r := got.Requests[0]
			if r.Outcome != tc.want || r.PlanName != tc.answer.PlanName || r.Message != tc.answer.Message || len(r.LeftOut) != len(tc.answer.LeftOut) {
				t.Errorf("the request is %+v", r)
			}
		})
	}
}

// What is refused in one namespace is asked for in none.
func TestAllObjectsAreAskedForOrNone(t *testing.T) {
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "remediationrequests"}, "", errors.New(`User "alice" cannot create resource "remediationrequests" in API group "plumbline.dev" in the namespace "banks"`))
	c := newCluster(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetNamespace() == "banks" {
			return no
		}
		return c.Create(ctx, o, opts...)
	}}, append(append(shop(t), driftedIn("shop", 1)...), driftedIn("banks", 1)...)...)
	a := newAnswers(t, c)
	p := a.wantProblem(a.send(http.MethodPost, executePath, executeBody(t, "shop.b0", "banks.b0")), wire.Forbidden, "")
	if diff := cmp.Diff(&wire.MissingRight{Verb: "create", Kind: "RemediationRequest", Namespace: "banks"}, p.Right); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if stored := requestsIn(t, c); len(stored) != 0 {
		t.Errorf("stored is %v", stored)
	}
}

func TestThePolicyMustAnswerRequests(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.RemediationPolicy)
		detail string
	}{
		"a policy that observes": {func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = "" }, "spec.mode of policy production-auto-remediation is ObserveOnly"},
		"a policy that tells":    {func(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionNotifyOnly }, "spec.action of policy production-auto-remediation is NotifyOnly"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := append(shop(t), driftedIn("shop", 1)...)
			for _, o := range objects {
				if p, is := o.(*v1alpha1.RemediationPolicy); is {
					tc.change(p)
				}
			}
			a := newAnswers(t, newCluster(t, refusingWrites(t), objects...))
			if p := a.wantProblem(a.send(http.MethodPost, executePath, executeBody(t, "shop.b0")), wire.Refused, ""); !strings.Contains(p.Detail, tc.detail) {
				t.Errorf("it says %q", p.Detail)
			}
		})
	}
}

// A remediator may ask, and may read no policy: the assessor judges it.
func TestACallerWhoMayNotReadThePolicyNamesIt(t *testing.T) {
	hooks := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.RemediationPolicy); is {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
		}
		return c.Get(ctx, key, o, opts...)
	}}
	c := newCluster(t, hooks, append(shop(t), driftedIn("shop", 1)...)...)
	a := newAnswers(t, c)
	want[wire.Execution](a, a.send(http.MethodPost, executePath, executeBody(t, "shop.b0")), http.StatusAccepted)
	if stored := requestsIn(t, c); len(stored["shop"]) != 1 {
		t.Errorf("stored is %v", stored)
	}
}

// previewed is a cluster with one drifted Deployment, as the plugin's own preview is tested with.
func previewed(t *testing.T, put func([]byte) ([]byte, error)) *inMemory {
	t.Helper()
	f := clitest.Shop(t)
	f.Targets.OnPut = put
	return &inMemory{WithWatch: f.Connect(t), user: authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre"}}, targets: f.Targets}
}

func TestAPreviewTellsPlansAndTriesTheirWrites(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "alice" cannot update resource "deployments"`))
	const draft = `{"policy":{"name":"draft","environmentName":"production","trigger":"immediate","action":"reconcile"}}`
	tests := map[string]struct {
		body    string
		put     func([]byte) ([]byte, error)
		outcome wire.Word[wire.DryRunOutcome]
		leftOut int
	}{
		"a write that leads to the authorized state": {`{"policyId":"production"}`, nil, "converges", 0},
		"a write that the caller may not make":       {`{"policyId":"production"}`, func([]byte) ([]byte, error) { return nil, forbidden }, "forbidden", 0},
		"an object that is named":                    {`{"policyId":"production","targets":["shop.deployments.apps.web"]}`, nil, "converges", 0},
		"an object that is in sync":                  {`{"policyId":"production","targets":["shop.deployments.apps.calm"]}`, nil, "", 1},
		"a policy that is not stored":                {draft, nil, "converges", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := previewed(t, tc.put)
			a := newAnswers(t, c)
			got := want[wire.Preview](a, a.send(http.MethodPost, remediationPath+"/preview", tc.body), http.StatusOK)
			if len(got.LeftOut) != tc.leftOut {
				t.Errorf("left out are %+v", got.LeftOut)
			}
			if tc.outcome == "" {
				if len(got.Plans)+len(got.DryRuns) > 0 {
					t.Errorf("it would write: %+v", got)
				}
				return
			}
			if len(got.Plans) != 1 || len(got.DryRuns) != 1 {
				t.Fatalf("%+v", got)
			}
			d := got.DryRuns[0]
			if d.Outcome != tc.outcome || d.Accepted != (tc.outcome == "converges") || d.BaselineName != "deployments.apps.web" || d.TargetID != got.Plans[0].Batches[0].Targets[0].TargetID {
				t.Errorf("the dry run is %+v", d)
			}
			if d.Accepted && len(d.Changes) == 0 {
				t.Error("no change is told")
			}
			stored := &v1alpha1.RemediationPolicyList{}
			if err := c.List(t.Context(), stored); err != nil || len(stored.Items) != 1 {
				t.Errorf("%d policies are stored: %v", len(stored.Items), err)
			}
		})
	}
}

func TestAPreviewNamesTheRightThatTheCallerLacks(t *testing.T) {
	f := clitest.Shop(t)
	f.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.BaselineRevision); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "baselinerevisions"}, key.Name, errors.New(`User "alice" cannot get resource "baselinerevisions" in API group "plumbline.dev" in the namespace "shop"`))
		}
		return c.Get(ctx, key, o, opts...)
	}
	c := &inMemory{WithWatch: f.Connect(t), user: authenticationv1.UserInfo{Username: "alice"}, targets: f.Targets}
	a := newAnswers(t, c)
	w := a.send(http.MethodPost, remediationPath+"/preview", `{"policyId":"production"}`)
	if w.Code == http.StatusOK { // a dry run that needs the body tells so
		if got := want[wire.Preview](a, w, http.StatusOK); len(got.DryRuns) != 1 || got.DryRuns[0].Outcome != "forbidden" {
			t.Errorf("%+v", got)
		}
		return
	}
	p := a.wantProblem(w, wire.Forbidden, "")
	if diff := cmp.Diff(&wire.MissingRight{Verb: "get", Kind: "BaselineRevision", Namespace: "shop"}, p.Right); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
