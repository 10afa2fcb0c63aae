// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// pairing is a world of two workloads and four workers, whose requests and replicas go over together.
func pairing(t *testing.T) (*world, *groupExecutor, *workloads) {
	t.Helper()
	w, a := rolling(t)
	e := &groupExecutor{world: w, client: w.Client, replicas: map[string]int{"worker": 4, "worker-next": 0}}
	w.Groups = e
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Variations = []v1alpha1.Variation{
			{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "web"}, Group: &v1alpha1.VariationGroup{Kind: "Deployment", Name: "worker"}},
			{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "canary"}, Group: &v1alpha1.VariationGroup{Kind: "Deployment", Name: "worker-next"}},
		}
		r.Spec.Rollout.Model, r.Spec.Rollout.RequestedBy = v1alpha1.RolloutModelHybrid, "ada"
		r.Spec.Rollout.Strategy.Stages = []v1alpha1.RolloutStage{
			{TrafficPercentage: new(v1alpha1.Percent(25)), Duration: &metav1.Duration{Duration: time.Minute}},
			{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}},
		}
	})
	return w, e, a
}

// counts has both variations tell counts between looks, with the executor at work.
func (e *groupExecutor) counts(t *testing.T, from, to, failed uint64) *v1alpha1.ABRelease {
	t.Helper()
	for n := from; n < to; n++ {
		e.tells(n, failed)
		e.live(t, 2)
	}
	return e.live(t, 1)
}

const (
	goodPair = "worker-next 1, worker 3, worker-next 4, worker 0"
	badPair  = "worker-next 1, worker 3, worker 4, worker-next 0"
)

func TestRequestsAndReplicasGoOverTogether(t *testing.T) {
	for name, c := range map[string]struct {
		breaks    func(*groupExecutor)
		failed    uint64
		did       string
		state     v1alpha1.RunState
		says      string
		following string
	}{
		"of a good revision":                 {func(*groupExecutor) {}, 0, goodPair, "Completed", "all stages passed", "canary 100 / stable 0"},
		"of one whose requests fail":         {func(*groupExecutor) {}, 50, badPair, "RolledBack", "of the run", "stable 100 / canary 0"},
		"of one whose workers restart":       {func(e *groupExecutor) { e.restarted = 1 }, 0, badPair, "RolledBack", "the group of canary: 1 of the canary's pods have restarted", "stable 100 / canary 0"},
		"of one whose workers are not ready": {func(e *groupExecutor) { e.unready = 1 }, 0, badPair, "RolledBack", "the group of canary: 0 of 1 pods are ready", "stable 100 / canary 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w, e, _ := pairing(t)
			r := e.live(t, 6)
			if r.Status.Split != "stable 75 / canary 25" || r.Status.Rollout.Stage != 1 || strings.Join(e.did, ", ") != "worker-next 1, worker 3" || len(r.Status.Rollout.Groups) != 2 || len(r.Finalizers) != 1 {
				t.Fatalf("in force is %q, and the executor did %q: %+v", r.Status.Split, e.did, r.Status.Rollout)
			}
			c.breaks(e)
			e.counts(t, 1, 14, c.failed)
			r = e.live(t, 6)
			run := r.Status.Rollout.Run
			if strings.Join(e.did, ", ") != c.did || run.State != c.state || r.Status.Split != c.following || run.Division.SettlementTime == nil {
				t.Errorf("the executor did %q, and in force is %q: %+v", e.did, r.Status.Split, run)
			}
			if c.says != "of the run" && !strings.Contains(run.Message, c.says) || run.Reason != map[v1alpha1.RunState]string{"Completed": "Promoted", "RolledBack": "StageFailed"}[c.state] {
				t.Errorf("the run has ended by %s: %s", run.Reason, run.Message)
			}
			if !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
				t.Errorf("the conditions are %+v", r.Status.Conditions)
			}
			w.neverBack(t, c.state == "Completed")
		})
	}
}

// The weight rises when the workers are ready, and what proxies have is acknowledged before workers go.
func TestNoWeightRisesBeforeTheWorkersAreReady(t *testing.T) {
	w, e, _ := pairing(t)
	e.unready = 1
	r := e.live(t, 12)
	if in := r.Status.Rollout; in.Waiting == nil || in.Waiting.Reason != "Deployment" || !strings.Contains(in.Waiting.Message, "Deployment worker-next") || r.Status.Split != "stable 100 / canary 0" {
		t.Fatalf("in force is %q, and the run waits for %+v", r.Status.Split, in.Waiting)
	}
	e.unready = 0
	e.world.live(t, 2)
	if split := w.router.Current(); len(e.did) != 1 || !slices.ContainsFunc(split.Shares, func(s traffic.Share) bool { return s.Variation == "canary" && s.Weight == 2500 }) {
		t.Errorf("the executor did %q, and proxies have %+v", e.did, split.Shares)
	}
	if e.live(t, 2); len(e.did) != 2 {
		t.Errorf("the executor did %q", e.did)
	}
}

// A rollback of requests waits for no group: not for one that cannot be read, and not for the executor.
func TestRequestsGoBackWhileTheWorkersCannot(t *testing.T) {
	_, e, _ := pairing(t)
	e.live(t, 6)
	e.err = errors.New("forbidden")
	r := e.counts(t, 1, 6, 50)
	if run := r.Status.Rollout.Run; r.Status.Split != "stable 100 / canary 0" || run.State != "RolledBack" || run.Division.SettlementTime != nil || len(r.Finalizers) != 1 {
		t.Fatalf("in force is %q: %+v", r.Status.Split, run)
	}
	if w := r.Status.Rollout.Waiting; w == nil || w.Reason != "Capacity" || !strings.Contains(w.Message, "the Deployments of both groups to be read") {
		t.Errorf("it waits for %+v", w)
	}
	e.err = nil
	if e.live(t, 8); strings.Join(e.did, ", ") != badPair {
		t.Errorf("the executor did %q", e.did)
	}
}

func TestWorkersThatCannotBeReadHoldTheRequests(t *testing.T) {
	_, e, _ := pairing(t)
	e.live(t, 6)
	e.err = errors.New("forbidden")
	r := e.counts(t, 1, 14, 0)
	if w := r.Status.Rollout.Waiting; w == nil || w.Reason != "Capacity" || r.Status.Split != "stable 75 / canary 25" {
		t.Errorf("in force is %q, and the run waits for %+v", r.Status.Split, w)
	}
}

// Another revision of the workers alone is another revision of the variation.
func TestANewRevisionOfAWorkloadBeginsARunOfBoth(t *testing.T) {
	_, e, a := pairing(t)
	e.live(t, 6)
	e.counts(t, 1, 14, 0)
	e.live(t, 6)
	a.revisions["web"] = "3"
	r := e.live(t, 8)
	if run := r.Status.Rollout.Run; run.Number != 2 || run.From.Variation != "canary" || r.Status.Split != "canary 75 / stable 25" {
		t.Errorf("in force is %q in %+v", r.Status.Split, run)
	}
	if got := strings.Join(e.did, ", "); got != goodPair+", worker 1, worker-next 3" {
		t.Errorf("the executor did %q", got)
	}
}

func TestADeletedReleaseReturnsRequestsAndReplicas(t *testing.T) {
	w, e, _ := pairing(t)
	if err := w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	r := e.live(t, 6)
	if err := e.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	e.world.live(t, 2)
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil || r.Status.Split != "stable 100 / canary 0" {
		t.Fatalf("in force is %q while the groups have %v: %v", r.Status.Split, e.replicas, err)
	}
	e.live(t, 12)
	if got := strings.Join(e.did, ", "); got != badPair {
		t.Errorf("the executor did %q", got)
	}
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the release is there still: %v, %+v", err, r.Finalizers)
	}
}

func TestAGroupBesideRequestsBelongsToOneRelease(t *testing.T) {
	w, e, _ := pairing(t)
	second := e.live(t, 1).DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "zzz", UID: "u2", Generation: 1}
	second.Spec.ServiceName, second.Status = "other", v1alpha1.ABReleaseStatus{}
	if err := w.Client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(second)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionStalled); c == nil || !strings.Contains(c.Message, "ABRelease web divides the replicas of Deployment worker") || second.Status.Rollout != nil {
		t.Errorf("the status is %+v", second.Status)
	}
}

// pairsCrashAt tells one run, and whether the process ended in it.
func pairsCrashAt(t *testing.T, failed uint64, c *crash) bool {
	t.Helper()
	w, e, _ := pairing(t)
	c.install(t, w)
	e.live(t, 10)
	e.counts(t, 1, 16, failed)
	r := e.live(t, 12)
	state, did := v1alpha1.RunState("Completed"), goodPair
	if failed > 0 {
		state, did = "RolledBack", badPair
	}
	if run := r.Status.Rollout.Run; run == nil || run.State != state || run.Number != 1 || run.Division.SettlementTime == nil {
		t.Errorf("the run is %+v, which waits for %+v", run, r.Status.Rollout.Waiting)
	}
	if got := strings.Join(e.did, ", "); got != did {
		t.Errorf("the executor did %q", got)
	}
	times := map[string]int{}
	for _, line := range r.Status.Rollout.History {
		if times[fmt.Sprint(line.Event, line.Message)]++; times[fmt.Sprint(line.Event, line.Message)] > 1 {
			t.Errorf("the history has %q twice", line.Message)
		}
	}
	w.neverBack(t, failed == 0)
	return c.crashed
}
