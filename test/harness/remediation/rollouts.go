// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

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
	rollouts(tb, config, nil, of)
}

// RolloutsThrough does the same, while the gate is open.
func (w *World) RolloutsThrough(g *Gate) {
	w.t.Helper()
	rollouts(w.t, w.cluster.Config, g, []client.ListOption{client.InNamespace(w.Name)})
}

// Gate holds rollouts up while it is shut, so that what goes on at the same time can be
// seen to. The zero Gate is open, and so is a nil one.
type Gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil while it is open
}

// Shut holds up all that have not ended yet.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// Open lets them go on.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// wait until it is open, or ctx ends.
func (g *Gate) wait(ctx context.Context) {
	if g == nil {
		return
	}
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
}

func rollouts(tb testing.TB, config *rest.Config, g *Gate, of []client.ListOption) {
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
			if err := follow(ctx, c, g, of); err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond): // the API server is away
				}
			}
		}
	}()
}

// follow rolls out until its watch ends. It fails when there is none.
func follow(ctx context.Context, c client.WithWatch, g *Gate, of []client.ListOption) error {
	// Without a resourceVersion a watch begins with everything that is there.
	watch, err := c.Watch(ctx, &appsv1.DeploymentList{}, of...)
	if err != nil {
		return fmt.Errorf("watching Deployments: %w", err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || d.Status.ObservedGeneration == d.Generation || d.DeletionTimestamp != nil {
			continue
		}
		g.wait(ctx)
		d.Status = RolledOut(d, !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, "broken"))
		_ = c.Status().Update(ctx, d) // after a conflict there is another event
	}
	return nil
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
