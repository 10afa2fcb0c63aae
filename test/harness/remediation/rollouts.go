// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rollouts does what the deployment controller and the kubelet do in the world, at
// once, until the test ends; see [Rollouts].
func (w *World) Rollouts() {
	w.t.Helper()
	Rollouts(w.t, w.cluster.Config, client.InNamespace(w.Name))
}

// Rollouts does what the deployment controller and the kubelet do, at once, for all
// Deployments whose image does not begin with "broken", until the test ends.
func Rollouts(tb testing.TB, config *rest.Config, of ...client.ListOption) {
	tb.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	tb.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			follow(ctx, c, of)
		}
	}()
}

// follow rolls out until its watch ends.
func follow(ctx context.Context, c client.WithWatch, of []client.ListOption) {
	// Without a resourceVersion a watch begins with everything that is there.
	watch, err := c.Watch(ctx, &appsv1.DeploymentList{}, of...)
	if err != nil {
		return // the API server is away; it is tried again
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || d.Status.ObservedGeneration == d.Generation || d.DeletionTimestamp != nil {
			continue
		}
		d.Status = RolledOut(d, !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, "broken"))
		_ = c.Status().Update(ctx, d) // after a conflict there is another event
	}
}

// RolledOut is the status of a Deployment whose rollout has ended, well or not.
func RolledOut(d *appsv1.Deployment, works bool) appsv1.DeploymentStatus {
	s := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas}
	available := corev1.ConditionFalse
	if works {
		s.ReadyReplicas, s.AvailableReplicas, available = s.Replicas, s.Replicas, corev1.ConditionTrue
	} else {
		s.UnavailableReplicas = s.Replicas
	}
	s.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Test"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}
	return s
}
