// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Health measures the pods of a target.
type Health struct {
	// Live reads pods past every cache.
	Live client.Reader
}

// workload has the fields of a workload that say how many pods it wants, and which.
type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas *int64                `json:"replicas"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"spec"`
	Status struct {
		DesiredNumberScheduled int64 `json:"desiredNumberScheduled"`
	} `json:"status"`
}

// Ask implements [Source].
func (h *Health) Ask(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) Answer {
	found, err := h.read(ctx, a, sight)
	if err != nil {
		return notAnswered(v1alpha1.ComponentHealth, err.Error())
	}
	component, counts := effect.JudgeHealth(found, timeOf(a.Spec.WrittenTime))
	answer := Answer{AssessedComponent: StoreComponent(v1alpha1.ComponentHealth, component)}
	if found.HasPods {
		answer.Health = &v1alpha1.MeasuredHealth{
			Desired: count(found.Desired), Pods: count(counts.Pods), Ready: count(counts.Ready),
			CrashLooping: count(counts.CrashLooping), OutOfMemory: count(counts.OutOfMemory), Restarted: count(counts.Restarted),
		}
	}
	return answer
}

// count fits a number of pods into the API.
func count(n int) int32 {
	const most = 1<<31 - 1
	return int32(min(max(n, 0), most)) //nolint:gosec // within the bounds
}

// read reads the workload, and its pods.
func (h *Health) read(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) (effect.Workload, error) {
	if sight.Read && (sight.Gone || sight.UID != a.Spec.Target.UID) {
		return effect.Workload{Gone: true}, nil
	}
	if sight.Raw == nil {
		return effect.Workload{}, fmt.Errorf("the target was not read: %s", sight.Why) //nolint:err113 // for people alone
	}
	var w workload
	if err := json.Unmarshal(sight.Raw, &w); err != nil {
		return effect.Workload{}, fmt.Errorf("decoding the target: %w", err)
	}
	desired, has := w.desired(canon.ParseGVK(a.Spec.Target.APIVersion, a.Spec.Target.Kind))
	found := effect.Workload{HasPods: has, Desired: desired, Unready: sight.Object.Ready == readiness.NotReady}
	if !has {
		return found, nil
	}
	var err error
	found.Pods, err = h.pods(ctx, a, &w)
	return found, err
}

// desired returns how many pods a workload wants; false for a kind that keeps no number of pods running.
func (w *workload) desired(gvk canon.GVK) (int, bool) {
	if gvk.Group != "apps" {
		return 0, false
	}
	switch gvk.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		if w.Spec.Replicas == nil {
			return 1, true
		}
		return int(*w.Spec.Replicas), true
	case "DaemonSet":
		return int(w.Status.DesiredNumberScheduled), true
	}
	return 0, false
}

// page is how many pods one request reads.
const page = 500

// pods reads what counts of the pods of a workload.
func (h *Health) pods(ctx context.Context, a *v1alpha1.EffectivenessAssessment, w *workload) (found []effect.Pod, err error) {
	err = h.eachPod(ctx, a, w, func(pod *corev1.Pod) { found = append(found, podOf(pod, timeOf(a.Spec.WrittenTime))) })
	return found, err
}

// names are those of the pods of a target; none for a target that was not read, or whose kind has no pods.
func (h *Health) names(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) (names []string, err error) {
	var w workload
	if sight.Raw == nil {
		return nil, nil
	}
	if err := json.Unmarshal(sight.Raw, &w); err != nil {
		return nil, fmt.Errorf("decoding the target: %w", err)
	}
	if _, has := w.desired(canon.ParseGVK(a.Spec.Target.APIVersion, a.Spec.Target.Kind)); !has {
		return nil, nil
	}
	err = h.eachPod(ctx, a, &w, func(pod *corev1.Pod) { names = append(names, pod.Name) })
	return names, err
}

// eachPod lists the pods that a workload selects, and passes on those that it owns.
func (h *Health) eachPod(ctx context.Context, a *v1alpha1.EffectivenessAssessment, w *workload, pass func(*corev1.Pod)) error {
	selector, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)
	if err != nil {
		return fmt.Errorf("reading the selector of the target: %w", err)
	}
	for next := ""; ; {
		var list corev1.PodList
		if err := h.Live.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("listing the pods of the target: %w", err)
		}
		for i := range list.Items {
			if w.owns(a, &list.Items[i]) {
				pass(&list.Items[i])
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// owns says that a pod is one of the workload's. The pods of a Deployment belong to ReplicaSets, whose names
// Kubernetes makes of the Deployment's name and the hash of the pod template, a label of the pod.
func (w *workload) owns(a *v1alpha1.EffectivenessAssessment, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case a.Spec.Target.Kind == "Deployment":
		return owner.Kind == "ReplicaSet" && owner.Name == w.Metadata.Name+"-"+pod.Labels["pod-template-hash"]
	}
	return owner.UID == w.Metadata.UID
}

// podOf returns what counts of a pod after a write.
func podOf(pod *corev1.Pod, written time.Time) effect.Pod {
	found := effect.Pod{
		Leaving: pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}
	beside := map[string]bool{} // init containers that run beside the others
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			beside[pod.Spec.InitContainers[i].Name] = true
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		found.Containers = append(found.Containers, containerOf(status, !beside[status.Name], written))
	}
	for i := range pod.Status.ContainerStatuses {
		found.Containers = append(found.Containers, containerOf(&pod.Status.ContainerStatuses[i], false, written))
	}
	return found
}

func containerOf(status *corev1.ContainerStatus, init bool, written time.Time) effect.Container {
	c := effect.Container{Init: init, Ready: status.Ready}
	if w := status.State.Waiting; w != nil {
		c.CrashLooping = w.Reason == "CrashLoopBackOff"
	}
	for _, ended := range []*corev1.ContainerStateTerminated{status.LastTerminationState.Terminated, status.State.Terminated} {
		if ended == nil {
			continue
		}
		at := ended.FinishedAt.Time
		if at.After(c.TerminatedTime) {
			c.TerminatedTime = at
		}
		c.OutOfMemory = c.OutOfMemory || ended.Reason == "OOMKilled" && at.After(written)
	}
	return c
}
