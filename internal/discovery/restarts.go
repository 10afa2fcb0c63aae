// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// CountRestarted counts the pods of a workload with a container that has ended since a time, by the clock of its
// node. Pods that are being deleted do not count. It is [ErrUnsynced] before anything is known.
func (w *Window) CountRestarted(ctx context.Context, workload traffic.Workload, since time.Time) (int, error) {
	from, err := w.opened()
	if err != nil {
		return 0, err
	}
	var list corev1.PodList
	if err := from.list(ctx, &list, client.InNamespace(workload.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing the pods of namespace %s: %w", workload.Namespace, err)
	}
	count := 0
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp == nil && hasEnded(pod.Status.ContainerStatuses, since) && ir.PodOf(pod).Workload == workload {
			count++
		}
	}
	return count, nil
}

// hasEnded tells whether a container has ended since a time. Times of nodes have whole seconds.
func hasEnded(statuses []corev1.ContainerStatus, since time.Time) bool {
	for i := range statuses {
		if t := statuses[i].LastTerminationState.Terminated; t != nil && !t.FinishedAt.Time.Before(since.Truncate(time.Second)) {
			return true
		}
	}
	return false
}

// lastEnd keeps when a container of a pod has ended last, and nothing else of the containers; nil if none has. A
// pod that has ended as a whole, as that of a Job, restarts nothing.
func lastEnd(pod *corev1.Pod) []corev1.ContainerStatus {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var last corev1.ContainerStateTerminated
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		for _, ended := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if ended != nil && ended.FinishedAt.After(last.FinishedAt.Time) {
				last.FinishedAt = ended.FinishedAt
			}
		}
	}
	if last.FinishedAt.IsZero() {
		return nil
	}
	return []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{Terminated: &last}}}
}
