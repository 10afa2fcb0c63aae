// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodState is how a pod of [World.Pods] does.
type PodState int

// The states.
const (
	// PodReady has run since it was made.
	PodReady PodState = iota
	// PodRestarted is ready, and its container has just ended once.
	PodRestarted
	// PodCrashLooping waits before its container is started again.
	PodCrashLooping
)

// podTemplateHash is what the Deployment controller puts on pods, as part of the name of their ReplicaSet.
const podTemplateHash = "5eed"

// Pods makes the pods of a Deployment, as its controller and the kubelet would.
func (w *World) Pods(name string, states ...PodState) {
	w.t.Helper()
	w.Must(w.CreatePods(w.t.Context(), name, states...))
}

// CreatePods is Pods for any goroutine.
func (w *World) CreatePods(ctx context.Context, name string, states ...PodState) error {
	for i, state := range states {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Name, Name: name + "-" + podTemplateHash + "-" + strconv.Itoa(i),
				Labels: map[string]string{"app": name, "pod-template-hash": podTemplateHash},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + podTemplateHash, UID: "of-the-replicaset", Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/shop:1"}}},
		}
		if err := w.cluster.Admin.Create(ctx, pod); err != nil {
			return fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{containerIn(state)}}
		if err := w.cluster.Admin.Status().Update(ctx, pod); err != nil {
			return fmt.Errorf("running pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func containerIn(state PodState) corev1.ContainerStatus {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(time.Now().Add(time.Minute))}}
	c := corev1.ContainerStatus{Name: "app", Ready: true}
	switch state {
	case PodReady:
	case PodRestarted:
		c.LastTerminationState = ended
	case PodCrashLooping:
		c.Ready, c.LastTerminationState = false, ended
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	return c
}
