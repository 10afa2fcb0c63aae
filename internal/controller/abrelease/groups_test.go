// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// groupExecutor stands in for the Deployments that are groups, and for the process that scales them. It writes past
// the crashes of the leader.
type groupExecutor struct {
	*world
	client   client.Client
	replicas map[string]int
	// unready is how many pods of the new group are not ready, and restarted how many have restarted.
	unready, restarted int
	// asked is the time from which restarts were asked for last.
	asked time.Time
	did   []string
	err   error
}

// dividing is a world of four workers whose release goes by stages of 25, 50 and 100 percent.
func dividing(t *testing.T) (*world, *groupExecutor) {
	t.Helper()
	w, _ := rolling(t)
	e := &groupExecutor{world: w, client: w.Client, replicas: map[string]int{"worker": 4, "worker-next": 0}}
	w.Groups = e
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.ServiceName = ""
		r.Spec.Variations = []v1alpha1.Variation{
			{Name: "stable", Group: &v1alpha1.VariationGroup{Kind: "Deployment", Name: "worker"}},
			{Name: "canary", Group: &v1alpha1.VariationGroup{Kind: "Deployment", Name: "worker-next"}},
		}
		r.Spec.Rollout.Model, r.Spec.Rollout.RequestedBy = v1alpha1.RolloutModelTargetGroup, "ada"
		r.Spec.Rollout.Strategy.Stages = []v1alpha1.RolloutStage{
			{TrafficPercentage: new(v1alpha1.Percent(25)), Duration: &metav1.Duration{Duration: time.Minute}},
			{TrafficPercentage: new(v1alpha1.Percent(50)), Duration: &metav1.Duration{Duration: time.Minute}},
			{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}},
		}
	})
	return w, e
}

// ReadGroup implements Groups.
func (e *groupExecutor) ReadGroup(_ context.Context, w traffic.Workload, since time.Time) (rollout.Arm, error) {
	n := e.replicas[w.Name]
	arm := rollout.Arm{Revision: rollout.Revision{Hash: "hash of " + w.Name, Image: w.Name}, Ready: n, Targets: n, Updated: n, Replicas: n}
	if w.Name == "worker-next" {
		if arm.Ready = max(0, n-e.unready); !since.IsZero() {
			e.asked, arm.Restarted = since, e.restarted
		}
	}
	return arm, e.err
}

// work carries out what the leader has asked for, and demands that both groups keep four replicas.
func (e *groupExecutor) work(t *testing.T) {
	t.Helper()
	var all v1alpha1.ReleaseWorkList
	if err := e.client.List(t.Context(), &all, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		work := &all.Items[i]
		if work.Status.Phase != "" {
			continue
		}
		name := map[v1alpha1.VariationName]string{"stable": "worker", "canary": "worker-next"}[work.Spec.Variation]
		if work.Spec.Verb != v1alpha1.WorkScale || work.Spec.ExpectedHash != "hash of "+name {
			t.Errorf("work %s is %+v", work.Name, work.Spec)
		}
		e.replicas[name] = int(*work.Spec.Replicas)
		e.did = append(e.did, fmt.Sprintf("%s %d", name, e.replicas[name]))
		if e.replicas["worker"]+e.replicas["worker-next"] < 4 {
			t.Errorf("after %q there are %v", e.did, e.replicas)
		}
		work.Status.Phase = v1alpha1.WorkSucceeded
		if err := e.client.Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
}

// live has the release looked at for a while with the executor at work.
func (e *groupExecutor) live(t *testing.T, looks int) *v1alpha1.ABRelease {
	t.Helper()
	for range looks {
		e.world.live(t, 1)
		e.work(t)
		e.clock.Step(2 * time.Second)
	}
	r := &v1alpha1.ABRelease{}
	if err := e.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, r); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return r
}

const (
	goodGroups = "worker-next 1, worker 3, worker-next 2, worker 2, worker-next 4, worker 0"
	badGroups  = "worker-next 1, worker 3, worker 4, worker-next 0"
)

func TestAReleaseDividesTheReplicasOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		breaks    func(*groupExecutor)
		did       string
		state     v1alpha1.RunState
		reason    string
		active    v1alpha1.VariationName
		following string
	}{
		"of a good revision":             {func(*groupExecutor) {}, goodGroups, "Completed", "Promoted", "canary", "canary 100 / stable 0"},
		"of one whose pods restart":      {func(e *groupExecutor) { e.restarted = 1 }, badGroups, "RolledBack", "StageFailed", "stable", "stable 100 / canary 0"},
		"of one whose pods do not serve": {func(e *groupExecutor) { e.unready = 1 }, badGroups, "RolledBack", "StageFailed", "stable", "stable 100 / canary 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := dividing(t)
			e.live(t, 6)
			c.breaks(e)
			r := e.live(t, 100)
			run := r.Status.Rollout.Run
			if strings.Join(e.did, ", ") != c.did || run.State != c.state || run.Reason != c.reason || r.Status.ActiveVariation != c.active || r.Status.Split != c.following {
				t.Errorf("the executor did %q, active is %s of %q: %+v", e.did, r.Status.ActiveVariation, r.Status.Split, run)
			}
			if r.Status.Effective != nil || r.Status.Acknowledged != nil || len(w.router.Applied()) > 0 {
				t.Errorf("proxies are told of groups: %+v", r.Status.Effective)
			}
			if groups := r.Status.Rollout.Groups; len(groups) != 2 || run.Division == nil || *run.Division.Replicas != 4 || run.Division.SettlementTime == nil || len(r.Finalizers) > 0 {
				t.Errorf("the groups are %+v in %+v, and the finalizers %v", groups, run.Division, r.Finalizers)
			}
			if e.asked.IsZero() || !slices.ContainsFunc(run.Stages, func(s v1alpha1.RolloutStageStatus) bool {
				return s.ShiftTime != nil && s.ShiftTime.Time.Equal(e.asked)
			}) {
				t.Errorf("restarts count since %s, and the stages are %+v", e.asked, run.Stages)
			}
			if !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
				t.Errorf("the conditions are %+v", r.Status.Conditions)
			}
		})
	}
}

func TestARunOfGroupsShowsWhatItDoes(t *testing.T) {
	_, e := dividing(t)
	r := e.live(t, 8)
	in := r.Status.Rollout
	if in.Waiting == nil || in.Waiting.Reason != "MinimumTime" || in.Stage != 1 || r.Status.Split != "stable 75 / canary 25" || len(r.Finalizers) != 1 {
		t.Fatalf("it is %q: %+v", r.Status.Split, in)
	}
	for i, want := range []string{"stable 3 of 3, 3 ready", "canary 1 of 1, 1 ready"} {
		g := in.Groups[i]
		if got := fmt.Sprintf("%s %d of %d, %d ready", g.Variation, *g.Replicas, *g.Wanted, *g.Ready); got != want || (g.RestartedPods == nil) != (i == 0) {
			t.Errorf("group %d is %q: %+v", i, got, g)
		}
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Message != "stable has 3 of 3 pods ready, canary has 1 of 1 pods ready" {
		t.Errorf("Ready is %+v", c)
	}
}

// The author of a run of groups skipped its stages although approval was NotAuthor.
func TestTheAuthorOfARunOfGroupsDoesNotSkipItsStage(t *testing.T) {
	w, e := dividing(t)
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Approval = v1alpha1.ApprovalNotAuthor })
	e.live(t, 8)
	for user, refused := range map[string]bool{"ada": true, "bob": false} {
		w.edit(func(r *v1alpha1.ABRelease) {
			r.Spec.Rollout.Control = &v1alpha1.RolloutControl{Verb: "Skip", Run: 1, Stage: 1, RequestedBy: user}
		})
		r := e.live(t, 1)
		handled := r.Status.Rollout.Handled
		if handled == nil || handled.RequestedBy != user || strings.Contains(handled.Refusal, "ada is the author of run 1") != refused {
			t.Errorf("%s was answered with %+v", user, handled)
		}
	}
}

func TestGroupsThatAnotherWriterScalesHoldTheRun(t *testing.T) {
	_, e := dividing(t)
	e.live(t, 8)
	e.replicas["worker"] = 6
	r := e.live(t, 60)
	if w := r.Status.Rollout.Waiting; w == nil || w.Reason != "GroupScaled" || !strings.Contains(w.Message, "scale Deployment worker to 3 again") || len(e.did) != 2 {
		t.Fatalf("it waits for %+v, and did %q", w, e.did)
	}
	e.replicas["worker"] = 3
	if r = e.live(t, 60); r.Status.Rollout.Run.State != "Completed" {
		t.Errorf("the run is %+v", r.Status.Rollout.Run)
	}
}

func TestGroupsThatCannotBeReadHoldTheRun(t *testing.T) {
	_, e := dividing(t)
	e.live(t, 8)
	e.err = errors.New("forbidden")
	r := e.live(t, 60)
	if w := r.Status.Rollout.Waiting; w == nil || w.Reason != "NoData" || r.Status.Rollout.Run.State != "Running" {
		t.Errorf("it waits for %+v", w)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionUnknown {
		t.Errorf("Ready is %+v", c)
	}
}

func TestADeletedReleaseGivesGroupsTheirReplicasBack(t *testing.T) {
	w, e := dividing(t)
	if err := w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	r := e.live(t, 8)
	if err := e.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	e.live(t, 12)
	if got := strings.Join(e.did, ", "); got != badGroups {
		t.Errorf("the executor did %q", got)
	}
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the release is there still: %v, %+v", err, r.Finalizers)
	}
}

func TestAGroupBelongsToOneRelease(t *testing.T) {
	w, e := dividing(t)
	first := e.live(t, 1)
	second := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "zzz", UID: "u2", Generation: 1}, Spec: *first.Spec.DeepCopy()}
	second.Spec.Variations[0].Group.Name = "other"
	if err := w.Client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(second)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionStalled); c == nil || !strings.Contains(c.Message, "ABRelease web divides the replicas of Deployment worker-next already") {
		t.Errorf("the conditions are %+v", second.Status.Conditions)
	}
	if second.Status.Rollout != nil {
		t.Errorf("it has a run: %+v", second.Status.Rollout)
	}
	if r := e.live(t, 8); r.Status.Rollout.Stage != 1 {
		t.Errorf("the first one is at %+v", r.Status.Rollout)
	}
}
