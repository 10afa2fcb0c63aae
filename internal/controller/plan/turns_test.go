// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// cached is a cache that holds some plans.
type cached struct {
	client.Reader
	plans []v1alpha1.RemediationPlan
}

func (c *cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RemediationPlanList).Items = c.plans
	return nil
}

// waitingOf makes plans of a policy that wait, each a second younger than the one before.
func waitingOf(policy string, n int) []v1alpha1.RemediationPlan {
	plans := make([]v1alpha1.RemediationPlan, n)
	for i := range plans {
		p := &plans[i]
		p.Namespace, p.Name, p.CreationTimestamp = "shop", fmt.Sprintf("%s-%04d", policy, i), *at(time.Duration(i) * time.Second)
		p.Spec.Plan.Policy.UID, p.Status.Phase = policy, v1alpha1.PlanDeferred
	}
	return plans
}

func plansOf(plans ...[]v1alpha1.RemediationPlan) *cached {
	c := &cached{}
	for _, some := range plans {
		c.plans = append(c.plans, some...)
	}
	rand.Shuffle(len(c.plans), func(i, j int) { c.plans[i], c.plans[j] = c.plans[j], c.plans[i] })
	return c
}

// afters are the times of turns, by the names of their plans.
func afters(turns []Turn) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, t := range turns {
		all[t.Name] = t.After
	}
	return all
}

func TestPlansThatWaitLookByTurns(t *testing.T) {
	many, few := waitingOf("many", 1000), waitingOf("few", 2)
	many[0].Status.Phase, many[0].Status.DeferralReason = v1alpha1.PlanRunning, "" // it carries on, and looks by itself
	many[1].Status.Phase = v1alpha1.PlanSucceeded
	r := &Reconciler{Cached: plansOf(many, few)}
	got := afters(r.all(t.Context(), &v1alpha1.RemediationLedger{}))
	want := map[string]time.Duration{"few-0000": 0, "few-0001": 0}
	for i := 2; i < 1000; i++ {
		want[fmt.Sprintf("many-%04d", i)] = max(0, time.Duration(200*(i-2-9))*time.Millisecond)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the turns (-want +got):\n%s", diff)
	}
}

// A halt holds back all plans at once, and an edit of a policy is about its own.
func TestABrakeWakesEachPlanAtOnce(t *testing.T) {
	running := waitingOf("running", 1)
	running[0].Status.Phase = v1alpha1.PlanRunning
	r := &Reconciler{Cached: plansOf(waitingOf("many", 100), running)}
	halt := &v1alpha1.RemediationLedger{Spec: v1alpha1.RemediationLedgerSpec{Halt: &v1alpha1.LedgerHalt{}}}
	policy := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{UID: "many"}}
	for name, test := range map[string]struct {
		turns []Turn
		plans int
	}{
		"a halt": {r.all(t.Context(), halt), 101}, "a policy": {r.ofPolicy(t.Context(), policy), 100},
	} {
		if len(test.turns) != test.plans {
			t.Errorf("%s wakes %d plans, want %d", name, len(test.turns), test.plans)
		}
		for _, turn := range test.turns {
			if turn.After != 0 {
				t.Errorf("%s wakes %s after %s", name, turn.Name, turn.After)
			}
		}
	}
}

// A plan at the end of a long queue is not looked at each half minute: a thousand of them would never rest.
func TestAPlanIsLeftAloneForAsLongAsItsTurnIsAway(t *testing.T) {
	plans := waitingOf("many", 1000)
	r := &Reconciler{Cached: plansOf(plans)}
	for i, want := range map[int]time.Duration{0: atMost, 9: atMost, 100: atMost, 999: 198 * time.Second} {
		if got := r.latest(t.Context(), requestOf(&plans[i]), true); got != want {
			t.Errorf("plan %d is left alone for %s, want %s", i, got, want)
		}
	}
}

// counted is a queue that notes what is added when.
type counted struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added map[string]time.Duration
}

func (c *counted) Add(r reconcile.Request) { c.added[r.Name] = 0 }

func (c *counted) AddAfter(r reconcile.Request, after time.Duration) { c.added[r.Name] = after }

func TestEachKindOfChangeWakesByTurns(t *testing.T) {
	wake := func(_ context.Context, changed client.Object) []Turn {
		return []Turn{{Request: reconcile.Request{NamespacedName: first}}, {reconcile.Request{NamespacedName: client.ObjectKeyFromObject(changed)}, time.Second}}
	}
	object := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
	h, ctx := byTurns(wake), t.Context()
	for name, change := range map[string]func(queue){
		"made":    func(q queue) { h.Create(ctx, event.CreateEvent{Object: object}, q) },
		"changed": func(q queue) { h.Update(ctx, event.UpdateEvent{ObjectNew: object}, q) },
		"deleted": func(q queue) { h.Delete(ctx, event.DeleteEvent{Object: object}, q) },
	} {
		q := &counted{added: map[string]time.Duration{}}
		change(q)
		if diff := cmp.Diff(map[string]time.Duration{first.Name: 0, "production": time.Second}, q.added); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
