// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// asked has the policy find every drift too old, and bob ask for these names.
func asked(names ...string) func(*planningtest.Cluster) {
	return func(c *planningtest.Cluster) {
		c.Policy.Spec.MaximumDriftAge = &metav1.Duration{Duration: time.Minute}
		c.Further = append(c.Further, request(c, "ask", names...))
	}
}

func request(c *planningtest.Cluster, name string, objects ...string) *v1alpha1.RemediationRequest {
	q := &v1alpha1.RemediationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch.Add(-time.Second))},
		Spec:       v1alpha1.RemediationRequestSpec{PolicyName: c.Policy.Name, RequestedBy: "bob", RequestedByGroups: []string{"sre"}},
	}
	for _, object := range objects {
		b := c.Baselines[object]
		q.Spec.Targets = append(q.Spec.Targets, v1alpha1.RequestedTarget{BaselineName: b.Name, DriftedHash: b.Status.Observed.Hash})
	}
	return q
}

func (b *bench) answer(name string) v1alpha1.RemediationRequestStatus {
	b.Helper()
	q := &v1alpha1.RemediationRequest{}
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: "shop", Name: name}, q); err != nil {
		b.Fatal(err)
	}
	return q.Status
}

func TestWhatIsTooOldForThePolicyIsPutBackForWhoAsks(t *testing.T) {
	b := newBench(t, asked("web"))
	b.look()
	plans := b.plans()
	if len(plans) != 1 {
		t.Fatalf("%d plans, and the answer is %+v", len(plans), b.answer("ask"))
	}
	planned := &plans[0].Spec.Plan
	if planned.InitiatedBy != "bob" || planned.Requester != "bob" || !cmp.Equal(planned.RequesterGroups, []string{"sre"}) || planned.Request == nil || planned.Request.UID != "uid-ask" {
		t.Errorf("the plan is %+v", planned)
	}
	answer := b.answer("ask")
	if answer.Outcome != v1alpha1.RequestPlanned || answer.PlanName != plans[0].Name || answer.AnswerTime == nil || len(answer.LeftOut) != 0 {
		t.Errorf("the answer is %+v", answer)
	}
	if events := b.events(); len(events) == 0 || !strings.HasPrefix(events[0], "Normal PlanCreated shop/"+plans[0].Name) {
		t.Errorf("events are %v", events)
	}
	// It is answered once.
	b.look()
	if len(b.plans()) != 1 {
		t.Errorf("%d plans", len(b.plans()))
	}
}

func TestARequestThatIsRefusedSaysWhy(t *testing.T) {
	tests := map[string]struct {
		change  func(*planningtest.Cluster)
		message string
		leftOut string
	}{
		"of a policy that observes":      {change: func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly }, message: "spec.mode of policy auto is ObserveOnly"},
		"of a policy that is halted":     {change: func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeHalted }, message: "is Halted"},
		"of a policy that only notifies": {change: func(c *planningtest.Cluster) { c.Policy.Spec.Action = v1alpha1.ActionNotifyOnly }, message: "spec.action"},
		"of a policy that has to be put right": {
			change: func(c *planningtest.Cluster) { c.Policy.Spec.EnvironmentName = "nowhere" }, message: "makes no plans before this is put right: spec.environmentName",
		},
		"that is old": {
			change: func(c *planningtest.Cluster) {
				c.Further[0].SetCreationTimestamp(metav1.NewTime(epoch.Add(-requestLasts - time.Second)))
			}, message: "not answered within 10m0s",
		},
		"of an object that is under a freeze": {
			change: func(c *planningtest.Cluster) {
				c.Guard.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}
			}, leftOut: "MassDrift",
		},
		"beyond what one operation may have": {
			change: func(c *planningtest.Cluster) {
				running := c.Ended("running", v1alpha1.PlanRunning, v1alpha1.StepApplied, "")
				running.Labels = map[string]string{"plumbline.dev/policy": "auto"}
				running.Spec.Plan.Targets[0].BaselineName = c.BaselineName("db")
			}, leftOut: "BlastRadius",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, asked("web"), test.change)
			before := len(b.plans())
			b.look()
			answer := b.answer("ask")
			if len(b.plans()) != before || answer.Outcome != v1alpha1.RequestRefused || answer.PlanName != "" || !strings.Contains(answer.Message, test.message) {
				t.Errorf("%d plans more, and the answer is %+v", len(b.plans())-before, answer)
			}
			if test.leftOut != "" && (len(answer.LeftOut) != 1 || answer.LeftOut[0].Reason != test.leftOut) {
				t.Errorf("left out is %+v, want %s", answer.LeftOut, test.leftOut)
			}
		})
	}
}

func TestAnAnswerThatWasLostIsGivenFromThePlan(t *testing.T) {
	b := newBench(t, asked("web", "db"))
	broken := errors.New("connection reset")
	whole := b.r.Client
	b.r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			if _, answers := o.(*v1alpha1.RemediationRequest); answers {
				return broken
			}
			return c.SubResource(sub).Update(ctx, o, options...)
		},
	})
	if _, err := b.tryLook(); !errors.Is(err, broken) || len(b.plans()) != 1 {
		t.Fatalf("the error is %v, and there are %d plans", err, len(b.plans()))
	}
	b.r.Client = whole
	b.look()
	want := v1alpha1.RemediationRequestStatus{
		Outcome: v1alpha1.RequestPlanned, PlanName: b.plans()[0].Name,
		LeftOut: []v1alpha1.LeftOut{{BaselineName: b.BaselineName("db"), Reason: "NotDrifted", Message: "it has not drifted: there is no drift to remediate"}},
	}
	if diff := cmp.Diff(want, b.answer("ask"), cmpopts.IgnoreFields(want, "AnswerTime")); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if len(b.plans()) != 1 {
		t.Errorf("%d plans", len(b.plans()))
	}
}

func TestAPlanForAPersonNeedsTheRightOfThatPersonAndOfTheAuthor(t *testing.T) {
	const get, update = "executor get deployments shop/web", "executor update deployments shop/web"
	bob, author := "bob update deployments shop/web", "platform update deployments shop/web"
	tests := map[string]struct {
		denies string
		asked  []string
		says   string
	}{
		"both have it":            {asked: []string{get, update, bob, author}},
		"bob lacks it":            {denies: "bob update", asked: []string{get, update, bob, author}, says: "bob, the user of the plan, may not update it"},
		"the author lacks it":     {denies: "platform update", asked: []string{get, update, bob, author}, says: "platform, the user of the plan, may not update it"},
		"the executor may not it": {denies: "executor get", asked: []string{get, update, bob, author}, says: "the executor may not get"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, answers := newAccessBench(t, asked("web"))
			answers.denies[test.denies] = true
			b.look()
			if diff := cmp.Diff(test.asked, answers.asked, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			answer := b.answer("ask")
			if (len(b.plans()) == 1) != (test.says == "") {
				t.Errorf("%d plans, and the answer is %+v", len(b.plans()), answer)
			}
			if test.says != "" && (len(answer.LeftOut) != 1 || answer.LeftOut[0].Reason != "NotAllowed" || !strings.Contains(answer.LeftOut[0].Message, test.says)) {
				t.Errorf("the answer is %+v", answer)
			}
		})
	}
}

// What a person may not write the policy may write all the same.
func TestARightThatAPersonLacksIsNotHeldAgainstThePolicy(t *testing.T) {
	b, answers := newAccessBench(t, func(c *planningtest.Cluster) { c.Further = append(c.Further, request(c, "ask", "web")) })
	answers.denies["bob update"] = true
	b.look()
	if plans := b.plans(); len(plans) != 1 || plans[0].Spec.Plan.InitiatedBy != "system:auto" {
		t.Errorf("plans are %+v", plans)
	}
}

func TestRequestsAreAnsweredInTheirOrder(t *testing.T) {
	b := newBench(t, asked("web"), func(c *planningtest.Cluster) {
		second := request(c, "another", "web")
		second.CreationTimestamp = metav1.NewTime(epoch.Add(-2 * time.Second))
		c.Further = append(c.Further, second)
	})
	b.look()
	first, second := b.answer("another"), b.answer("ask")
	if first.Outcome != v1alpha1.RequestPlanned || second.Outcome != v1alpha1.RequestRefused || second.LeftOut[0].Reason != "UnderWay" {
		t.Errorf("the answers are %+v and %+v", first, second)
	}
}

// To plan reads all objects of a policy, so whoever may ask could hold it up.
func TestAFloodOfRequestsDoesNotHoldUpOtherPeople(t *testing.T) {
	b := newBench(t, asked("web"), func(c *planningtest.Cluster) {
		for i := range 5 {
			c.Further = append(c.Further, request(c, fmt.Sprint("flood-", i), "db"))
		}
		other := request(c, "z-other", "web")
		other.Namespace = "elsewhere"
		c.Further = append(c.Further, other)
	})
	answered := func() (n int) {
		var all v1alpha1.RemediationRequestList
		if err := b.client.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		for i := range all.Items {
			if all.Items[i].Status.Outcome != "" {
				n++
			}
		}
		return n
	}
	for look, want := range []int{3, 5, 7} { // two of the shop, and the one of elsewhere
		result := b.look()
		if got := answered(); got != want {
			t.Errorf("after look %d %d are answered, want %d", look, got, want)
		}
		if again := want < 7; again != (result.RequeueAfter == moreAnswers) {
			t.Errorf("after look %d the next is in %s", look, result.RequeueAfter)
		}
	}
}

func TestRequestsOfOthersAreLeftAlone(t *testing.T) {
	b := newBench(t, asked("web"), func(c *planningtest.Cluster) {
		c.Further[0].(*v1alpha1.RemediationRequest).Spec.PolicyName = "another"
	})
	b.look()
	if answer := b.answer("ask"); answer.Outcome != "" || len(b.plans()) != 0 {
		t.Errorf("the answer is %+v, and there are %d plans", answer, len(b.plans()))
	}
}

func TestWhatBecomesOfRequests(t *testing.T) {
	tests := map[string]struct {
		policy   string
		answered time.Duration // ago; zero is not yet
		gone     bool
		outcome  v1alpha1.RequestOutcome
		says     string
		again    time.Duration
	}{
		"one of a policy that is there":      {policy: "auto", again: requestLasts},
		"one of a policy that is not":        {policy: "nope", outcome: v1alpha1.RequestRefused, says: `spec.policyName: there is no RemediationPolicy "nope"`},
		"one that was answered a moment ago": {policy: "auto", answered: time.Minute, outcome: v1alpha1.RequestPlanned, again: 59 * time.Minute},
		"one that was answered long ago":     {policy: "auto", answered: time.Hour, gone: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, asked("web"), func(c *planningtest.Cluster) {
				q := c.Further[0].(*v1alpha1.RemediationRequest)
				q.Spec.PolicyName = test.policy
				if test.answered > 0 {
					q.Status = v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestPlanned, AnswerTime: &metav1.Time{Time: epoch.Add(-test.answered)}}
				}
			})
			r := &Requests{Client: b.client, Live: b.client, Clock: b.clock, Keep: time.Hour}
			key := types.NamespacedName{Namespace: "shop", Name: "ask"}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter != test.again {
				t.Errorf("it is looked at again in %s (%v), want %s", result.RequeueAfter, err, test.again)
			}
			q := &v1alpha1.RemediationRequest{}
			if err := b.client.Get(t.Context(), key, q); (client.IgnoreNotFound(err) == nil && err != nil) != test.gone {
				t.Fatalf("reading it gives %v", err)
			}
			if q.Status.Outcome != test.outcome || !strings.Contains(q.Status.Message, test.says) {
				t.Errorf("the answer is %+v", q.Status)
			}
		})
	}
}
