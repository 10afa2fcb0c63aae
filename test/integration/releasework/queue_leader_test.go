// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// cloneWorld has a release with a clone, whose pods follow each pod template at once.
type cloneWorld struct{ *leaderWorld }

func newClone(t *testing.T) *cloneWorld {
	t.Helper()
	w := &cloneWorld{&leaderWorld{world: newWorld(t)}}
	w.mayWrite("alice")
	w.lead()
	w.leader.Clones, w.leader.Endpoints, w.follow = &revisions.CloneReader{Live: w.xds}, w, w.settle
	w.release = w.releaseOf("alice")
	w.release.Spec.Rollout.StrategyName = ""
	w.release.Spec.Rollout.Strategy = &v1alpha1.RolloutStrategySpec{HealthCheckInterval: &metav1.Duration{Duration: 10 * time.Second}, Stages: []v1alpha1.RolloutStage{
		{TrafficPercentage: new(v1alpha1.Percent(25)), Duration: &metav1.Duration{Duration: 3 * time.Second}},
		{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}},
	}}
	w.release.Spec.Rollout.Supersede = v1alpha1.SupersedeQueue
	w.settle()
	return w
}

// find reads a Deployment; nil if it does not exist.
func (w *cloneWorld) find(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: name}, d)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.Must(err)
	return d
}

// settle has the pods of both Deployments be those of their templates.
func (w *cloneWorld) settle() {
	for _, name := range []string{"web", "web-canary"} {
		d := w.find(name)
		if d == nil || d.Status.ObservedGeneration == d.Generation {
			continue
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if err := admin.Status().Update(w.Ctx(), d); !apierrors.IsConflict(err) { // the executor was faster
			w.Must(err)
		}
	}
}

// Count implements abrelease.Endpoints: the pods have the image of the template as their revision label.
func (w *cloneWorld) Count(context.Context, traffic.Split) (map[string]traffic.Endpoints, bool, error) {
	counted := map[string]traffic.Endpoints{}
	for variation, name := range map[string]string{"stable": "web", "canary": "web-canary"} {
		d := w.find(name)
		if d == nil || d.Status.ReadyReplicas == 0 {
			counted[variation] = traffic.Endpoints{}
			continue
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		counted[variation] = traffic.Endpoints{Ready: int(d.Status.ReadyReplicas), Targets: int(d.Status.ReadyReplicas), Revisions: []string{image[strings.LastIndex(image, ":")+1:]}}
	}
	return counted, true, nil
}

func (w *cloneWorld) imageOf(name string) string {
	w.t.Helper()
	if d := w.find(name); d != nil {
		return d.Spec.Template.Spec.Containers[0].Image
	}
	return ""
}

// runIs tells whether a run has a state.
func runIs(number int64, state v1alpha1.RunState) func(*v1alpha1.ABRelease) bool {
	return func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in != nil && in.Run != nil && in.Run.Number == number && in.Run.State == state
	}
}

// TestAQueuedChangeIsTakenUpByTheNextRun has the leader decide and the executor write, each with the rights that the
// chart gives it. The author asks for another image in the first stage, and for a third one at its end.
func TestAQueuedChangeIsTakenUpByTheNextRun(t *testing.T) {
	const second, third = "registry.example/shop:3", "registry.example/shop:4"
	w := newClone(t)
	startExecutor(t, untouched)
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.until("the clone has a quarter", at(1))
	for _, image := range []v1alpha1.ImageReference{second, third} {
		w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Variations[1].Clone.Image = image })
		r := w.until("the change is queued", func(r *v1alpha1.ABRelease) bool {
			return r.Status.Rollout.Run.Clone.QueuedTime != nil && r.Status.ObservedGeneration == r.Generation
		})
		if run := r.Status.Rollout.Run; run.Number != 1 || run.State != "Running" || w.imageOf("web-canary") != newImage {
			t.Fatalf("the clone has %s in %+v", w.imageOf("web-canary"), run)
		}
	}
	w.told("the run is promoted", 0, runIs(1, "Promoting"))
	if image := w.imageOf("web-canary"); image != newImage {
		t.Errorf("the clone is promoted with %s", image)
	}
	r := w.told("the next run has a quarter", 0, func(r *v1alpha1.ABRelease) bool { return runIs(2, "Running")(r) && at(1)(r) })
	if w.imageOf("web") != newImage || w.imageOf("web-canary") != third || r.Status.Rollout.Run.Clone.QueuedTime != nil {
		t.Errorf("the baseline has %s, and the clone %s: %+v", w.imageOf("web"), w.imageOf("web-canary"), r.Status.Rollout.Run.Clone)
	}
	var events []string
	for _, e := range r.Status.Rollout.History {
		if e.Run == 1 && (e.Event == "ab.change_queued" || e.Event == "ab.baseline_updated" || e.Event == "ab.promoted" || e.Event == "ab.rolled_back") {
			events = append(events, e.Event)
		}
	}
	if got := strings.Join(events, " "); got != "ab.change_queued ab.baseline_updated ab.promoted" {
		t.Errorf("run 1 has %q", got)
	}
	w.told("the next run is over", 0, runIs(2, "Completed"))
	if image := w.imageOf("web"); image != third {
		t.Errorf("the baseline has %s", image)
	}
	w.until("the clone has no pods", func(*v1alpha1.ABRelease) bool { return *w.find("web-canary").Spec.Replicas == 0 })
}

// TestAQueuedChangeWaitsForTheEndOfAFailure: the run fails with a change in the queue, and the next run takes the
// change up from a clone that was scaled to 0.
func TestAQueuedChangeWaitsForTheEndOfAFailure(t *testing.T) {
	w := newClone(t)
	w.release.Spec.Rollout.Strategy.Stages[0].Duration = &metav1.Duration{Duration: time.Minute}
	startExecutor(t, untouched)
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.until("the clone has a quarter", at(1))
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Variations[1].Clone.Image = "registry.example/shop:3" })
	w.until("the change is queued", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Run.Clone.QueuedTime != nil })
	r := w.told("the next run has a quarter", 500, func(r *v1alpha1.ABRelease) bool { return runIs(2, "Running")(r) && at(1)(r) })
	rejected := r.Status.Rollout.Rejected
	if len(rejected) != 1 || rejected[0].Run != 1 || rejected[0].Image != newImage || w.imageOf("web-canary") != "registry.example/shop:3" {
		t.Errorf("the clone has %s, and rejected are %+v", w.imageOf("web-canary"), rejected)
	}
	if image := w.imageOf("web"); image == newImage {
		t.Errorf("the baseline has %s", image)
	}
	made := &v1alpha1.ReleaseWorkList{}
	w.Must(admin.List(w.Ctx(), made, client.InNamespace(w.Name)))
	var did []string
	for i := range made.Items {
		s := &made.Items[i].Spec
		did = append(did, fmt.Sprintf("%d.%d %s %d", s.Run, s.Number, s.Verb, *s.Replicas))
	}
	if got := strings.Join(did, ", "); got != "1.1 CreateClone 1, 1.2 Scale 0, 2.1 CreateClone 1" && got != "1.1 CreateClone 1, 2.1 CreateClone 1" {
		t.Errorf("the executor was asked for %q", got)
	}
}
