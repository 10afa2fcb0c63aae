// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// groupsWorld has two Deployments whose replicas a release divides. The test is their controller, and the kubelet of
// their pods.
type groupsWorld struct {
	*leaderWorld
	// unready is how many pods of the new group are not ready, and restarted how many have restarted.
	unready, restarted atomic.Int32
}

// newGroups has a Deployment of four workers, and one of another revision without any.
func newGroups(t *testing.T) *groupsWorld {
	t.Helper()
	w := &groupsWorld{leaderWorld: &leaderWorld{world: newWorld(t)}}
	w.mayWrite("alice")
	for name, replicas := range map[string]int32{"worker": 4, "worker-next": 0} {
		labels := map[string]string{"group": name}
		w.Must(admin.Create(w.Ctx(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/" + name + ":1"}}},
			}},
		}))
	}
	w.settle()
	w.release = &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
		Spec: v1alpha1.ABReleaseSpec{
			Stable: "stable",
			Variations: []v1alpha1.Variation{
				{Name: "stable", Group: &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker"}},
				{Name: "canary", Group: &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker-next"}},
			},
			TrafficSplit: v1alpha1.TrafficSplit{
				Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100), "canary": v1alpha1.Percent(0)},
			},
			Rollout: &v1alpha1.Rollout{
				Model: v1alpha1.RolloutModelTargetGroup, RequestedBy: "alice",
				Strategy: &v1alpha1.RolloutStrategySpec{HealthCheckInterval: &metav1.Duration{Duration: 10 * time.Second}, Stages: []v1alpha1.RolloutStage{
					{TrafficPercentage: new(v1alpha1.Percent(25)), Duration: &metav1.Duration{Duration: 3 * time.Second}},
					{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}},
				}},
			},
		},
	}
	w.lead()
	w.leader.Groups, w.follow = &revisions.GroupReader{Live: w.xds, Pods: w}, w.settle
	return w
}

// CountRestarted implements revisions.Pods.
func (w *groupsWorld) CountRestarted(_ context.Context, of traffic.Workload, _ time.Time) (int, error) {
	if of.Name != "worker-next" {
		return 0, fmt.Errorf("restarts of %+v are asked for", of)
	}
	return int(w.restarted.Load()), nil
}

// settle has the pods of both Deployments be there, as their controller and kubelets would.
func (w *groupsWorld) settle() {
	w.t.Helper()
	for _, name := range []string{"worker", "worker-next"} {
		d := w.deployment(name)
		n := *d.Spec.Replicas
		ready := n
		if name == "worker-next" {
			ready = max(0, n-w.unready.Load())
		}
		status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: ready, AvailableReplicas: ready}
		if d.Status.ObservedGeneration != status.ObservedGeneration || d.Status.ReadyReplicas != ready {
			d.Status = status
			w.Must(client.IgnoreNotFound(admin.Status().Update(w.Ctx(), d)))
		}
	}
}

func (w *groupsWorld) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: name}, d))
	return d
}

// replicas of both groups, which together are never fewer than four.
func (w *groupsWorld) replicas() (active, canary int32) {
	w.t.Helper()
	canary = *w.deployment("worker-next").Spec.Replicas // it grows before the other one shrinks, and shrinks after that
	active = *w.deployment("worker").Spec.Replicas
	return active, canary
}

// at tells whether a run is in a stage whose clock runs.
func at(stage int32) func(*v1alpha1.ABRelease) bool {
	return func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in != nil && in.Run != nil && in.Stage == stage && in.Run.Stages[stage-1].StartTime != nil
	}
}

// over tells whether a run has ended, and the groups have what it leaves them.
func over(state v1alpha1.RunState) func(*v1alpha1.ABRelease) bool {
	return func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in != nil && in.Run != nil && in.Run.State == state && in.Run.Division.SettlementTime != nil
	}
}

func (w *groupsWorld) have(when string, wantActive, wantCanary int32) {
	w.t.Helper()
	if active, canary := w.replicas(); active != wantActive || canary != wantCanary {
		w.t.Errorf("%s the groups have %d and %d replicas, want %d and %d", when, active, canary, wantActive, wantCanary)
	}
}

// TestWorkersGoOverFromOneGroupToTheOther has the leader decide and the executor scale, each with the rights that
// the chart gives it.
func TestWorkersGoOverFromOneGroupToTheOther(t *testing.T) {
	w := newGroups(t)
	startExecutor(t, untouched)
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	r := w.until("a quarter has gone over", at(1))
	w.have("in the first stage", 3, 1)
	if len(r.Finalizers) != 1 || r.Status.Effective != nil || len(r.Status.Rollout.Groups) != 2 {
		t.Errorf("the status is %+v, and the finalizers %v", r.Status, r.Finalizers)
	}
	r = w.until("all have gone over", over("Completed"))
	w.have("after the run", 0, 4)
	if r.Status.ActiveVariation != "canary" || len(w.router.Applied()) > 0 {
		t.Errorf("active is %s, and %d splits were told", r.Status.ActiveVariation, len(w.router.Applied()))
	}
	for i, said := range []string{"worker-next 1", "worker 3", "worker-next 4", "worker 0"} {
		made := &v1alpha1.ReleaseWork{}
		w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: fmt.Sprintf("web-1-%d", i+1)}, made))
		if got := fmt.Sprintf("%s %d", made.Status.TargetRef.Name, *made.Spec.Replicas); got != said || made.Status.Phase != v1alpha1.WorkSucceeded || *made.Status.GroupReplicas != 4 {
			t.Errorf("work %d is %q: %+v", i+1, got, made.Status)
		}
	}

	d := w.deployment("worker") // the roles have changed
	d.Spec.Template.Spec.Containers[0].Image = newImage
	w.Must(admin.Update(w.Ctx(), d))
	w.until("a quarter goes back in another revision", at(1))
	w.have("in the second run", 1, 3)
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.Must(admin.Delete(w.Ctx(), w.release))
	w.until("the release goes once the replicas are back", func(*v1alpha1.ABRelease) bool {
		return apierrors.IsNotFound(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), &v1alpha1.ABRelease{}))
	})
	w.have("after the release", 0, 4)
}

func TestWorkersThatRestartGoBack(t *testing.T) {
	w := newGroups(t)
	startExecutor(t, untouched)
	w.release.Spec.Rollout.Strategy.Stages[0].Duration = &metav1.Duration{Duration: time.Minute}
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.until("a quarter has gone over", at(1))
	w.restarted.Store(1)
	r := w.until("all replicas are back", over("RolledBack"))
	w.have("after the run", 4, 0)
	if run := r.Status.Rollout.Run; run.Reason != "StageFailed" || !strings.Contains(run.Message, "1 of the canary's pods have restarted") {
		t.Errorf("the run is %+v", run)
	}
}

func TestTheExecutorRefusesGroupsThatOthersScale(t *testing.T) {
	w := newGroups(t)
	startExecutor(t, untouched)
	a := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "workers"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"}, MaxReplicas: 9,
		},
	}
	w.Must(admin.Create(w.Ctx(), a))
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	r := w.until("the run waits for a person", waits("WorkRefused"))
	if m := r.Status.Rollout.Waiting.Message; !strings.Contains(m, "GroupAutoscaled: the HorizontalPodAutoscaler workers scales the Deployment worker") {
		t.Errorf("it waits for %q", m)
	}
	w.have("with an autoscaler", 4, 0)
	w.Must(admin.Delete(w.Ctx(), a))
	d := w.deployment("worker")
	d.Labels = map[string]string{"argocd.argoproj.io/instance": "shop"}
	w.Must(admin.Update(w.Ctx(), d))
	w.retry(1)
	r = w.until("the run waits for a person again", func(r *v1alpha1.ABRelease) bool {
		return waits("WorkRefused")(r) && strings.Contains(r.Status.Rollout.Waiting.Message, "work 2")
	})
	if m := r.Status.Rollout.Waiting.Message; !strings.Contains(m, "GitOpsOwned: Argo CD applies spec.replicas of the Deployment worker") {
		t.Errorf("it waits for %q", m)
	}
	d = w.deployment("worker")
	d.Labels = nil
	w.Must(admin.Update(w.Ctx(), d))
	w.unready.Store(1)
	w.retry(2)
	w.until("the canary has a pod that is not ready", waits("Deployment"))
	w.have("while the canary is not ready", 4, 1)
	w.unready.Store(0)
	w.until("a quarter has gone over", at(1))
	w.have("in the first stage", 3, 1)
}

func waits(reason string) func(*v1alpha1.ABRelease) bool {
	return func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in != nil && in.Waiting != nil && in.Waiting.Reason == reason
	}
}

// retry asks for the last work once more.
func (w *groupsWorld) retry(attempt int32) {
	w.t.Helper()
	w.Eventually("the request is stored", func() error {
		r := &v1alpha1.ABRelease{}
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), r); err != nil {
			return err
		}
		r.Spec.Rollout.Control = &v1alpha1.RolloutControl{Verb: "Retry", Run: 1, Attempt: attempt, RequestedBy: "alice"}
		return w.As("alice").Update(w.Ctx(), r)
	})
}
