// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// workers makes a Deployment of workers, whose controller the test is.
func (s *shop) workers(name string, replicas int32) {
	s.Helper()
	labels := map[string]string{"group": name}
	s.create(&appsv1.Deployment{ObjectMeta: s.named(name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:" + name}}}},
	}})
	s.scale(name, replicas)
}

// scale a Deployment as the executor does, and have all of its pods be ready.
func (s *shop) scale(name string, replicas int32) {
	s.Helper()
	d := &appsv1.Deployment{}
	s.must(s.c.admin.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, d))
	d.Spec.Replicas = &replicas
	s.must(s.c.admin.Update(s.Context(), d))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	s.must(s.c.admin.Status().Update(s.Context(), d))
}

// scales awaits a work, carries it out in the place of the executor, and answers it.
func (s *shop) scales(r *v1alpha1.ABRelease, executor client.Client, number int, variation v1alpha1.VariationName, replicas int32) {
	s.Helper()
	work := s.asks(r, number, v1alpha1.WorkScale)
	if work.Spec.Variation != variation || *work.Spec.Replicas != replicas {
		s.Fatalf("work %d is %+v, want %d of %s", number, work.Spec, replicas, variation)
	}
	s.scale(map[v1alpha1.VariationName]string{"stable": "worker", "canary": "worker-next"}[variation], replicas)
	s.done(executor, work)
}

// TestAWorkerThatRestartsSendsItsGroupBack has the discovery server run with the rights of the chart. A container of
// the canary restarts in the first stage, which the cache of pods tells.
func TestAWorkerThatRestartsSendsItsGroupBack(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c, _ := delivery(t)
	s := c.shop(t, enabled)
	s.workers("worker", 4)
	s.workers("worker-next", 0)
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(`
stable: stable
variations:
- {name: stable, group: {kind: Deployment, name: worker}}
- {name: canary, group: {kind: Deployment, name: worker-next}}
trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}
rollout:
  model: TargetGroup
  requestedBy: ann
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 25, duration: 10m}
    - {trafficPercentage: 100, duration: 0s}
`), &r.Spec))
	s.must(s.as("ann", "create").Create(t.Context(), r))
	executor := s.executor()
	s.scales(r, executor, 1, "canary", 1)
	s.scales(r, executor, 2, "stable", 3)
	s.waits(r, "MinimumTime")
	if r.Status.Effective != nil || len(r.Status.Rollout.Groups) != 2 || r.Status.Split != "stable 75 / canary 25" {
		t.Errorf("the status is %+v", r.Status)
	}
	pod := &corev1.Pod{ObjectMeta: s.named("worker-next-1-a"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:worker-next"}}}}
	pod.Labels = map[string]string{"pod-template-hash": "1", "group": "worker-next"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "worker-next-1", UID: types.UID("1"), Controller: new(true)}}
	s.create(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", Image: "shop:worker-next", RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
	}}}
	s.must(c.admin.Status().Update(t.Context(), pod))
	s.scales(r, executor, 3, "stable", 4)
	s.scales(r, executor, 4, "canary", 0)
	s.wait(r, patience, "the groups have their replicas back", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Rollout.Run.Division.SettlementTime != nil && len(r.Finalizers) == 0
	})
	if run := r.Status.Rollout.Run; run.State != "RolledBack" || run.Reason != "StageFailed" {
		t.Errorf("the run is %+v", fmt.Sprint(run))
	}
}
