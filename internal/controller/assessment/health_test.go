// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// changed is a pod of the target with a change.
func changed(name string, change func(*corev1.Pod)) client.Object {
	p := podOfWeb(name, true)
	change(p)
	return p
}

func terminated(reason string, after time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, FinishedAt: *at(after)}}
}

func TestWhichPodsCount(t *testing.T) {
	of := func(desired, pods, ready int32) v1alpha1.MeasuredHealth {
		return v1alpha1.MeasuredHealth{Desired: desired, Pods: pods, Ready: ready}
	}
	with := func(m v1alpha1.MeasuredHealth, change func(*v1alpha1.MeasuredHealth)) v1alpha1.MeasuredHealth {
		change(&m)
		return m
	}
	tests := map[string]struct {
		target func(*appsv1.Deployment)
		pods   []client.Object
		want   v1alpha1.MeasuredHealth
	}{
		"both pods":  {pods: twoPods(true, true), want: of(2, 2, 2)},
		"no pod":     {want: of(2, 0, 0)},
		"no replica": {target: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, want: of(0, 0, 0)},
		"a number of replicas that is left out is 1": {target: func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, pods: twoPods(true), want: of(1, 1, 1)},
		"defect 7: pods are found by their owner, whatever their labels are named": {
			target: func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"role": "front"} },
			pods:   []client.Object{changed("a", func(p *corev1.Pod) { p.Labels["role"] = "front" })}, want: of(2, 1, 1),
		},
		"a pod with the labels and of another owner": {
			pods: []client.Object{changed("a", func(p *corev1.Pod) { p.OwnerReferences[0].Name = "web-canary-1" })}, want: of(2, 0, 0),
		},
		"a pod with the labels and without an owner": {pods: []client.Object{changed("a", func(p *corev1.Pod) { p.OwnerReferences = nil })}, want: of(2, 0, 0)},
		"a pod of another namespace":                 {pods: []client.Object{changed("a", func(p *corev1.Pod) { p.Namespace = "bank" })}, want: of(2, 0, 0)},
		"a pod that is being deleted": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = at(0), []string{"x"}
		})}, want: of(2, 0, 0)},
		"a pod that has failed":   {pods: []client.Object{changed("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, want: of(2, 0, 0)},
		"a pod that has finished": {pods: []client.Object{changed("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, want: of(2, 0, 0)},
		"a pod without statuses":  {pods: []client.Object{changed("a", func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })}, want: of(2, 1, 0)},
		"a container that ran out of memory since the write": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState = terminated("OOMKilled", time.Minute)
		})}, want: with(of(2, 1, 1), func(m *v1alpha1.MeasuredHealth) { m.OutOfMemory, m.Restarted = 1, 1 })},
		"a container that ran out of memory before the write, and ended since": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			s := &p.Status.ContainerStatuses[0]
			s.Ready, s.LastTerminationState, s.State = false, terminated("OOMKilled", -time.Minute), terminated("Error", time.Minute)
		})}, want: with(of(2, 1, 0), func(m *v1alpha1.MeasuredHealth) { m.Restarted = 1 })},
		"an init container that crashes": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Ready = false
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		})}, want: with(of(2, 1, 0), func(m *v1alpha1.MeasuredHealth) { m.CrashLooping = 1 })},
		"an init container that is done is no restart": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: terminated("Completed", time.Minute)}}
		})}, want: of(2, 1, 1)},
		"a sidecar has to be ready": {pods: []client.Object{changed("a", func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy"}}
		})}, want: of(2, 1, 0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := written()
			w := newWorld(t, a, tc.pods...)
			if tc.target != nil {
				tc.target(w.target)
			}
			w.judge()
			sight := w.r.Targets.look(t.Context(), a)
			got := (&Health{Live: w.client}).Ask(t.Context(), a, &sight)
			if got.Health == nil {
				t.Fatalf("nothing was measured: %+v", got)
			}
			if diff := cmp.Diff(tc.want, *got.Health); diff != "" {
				t.Errorf("the pods differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHowManyPodsAWorkloadWants(t *testing.T) {
	three := int64(3)
	w := &workload{}
	w.Spec.Replicas, w.Status.DesiredNumberScheduled = &three, 5
	tests := map[string]struct {
		gvk  canon.GVK
		want int
		has  bool
	}{
		"a Deployment":                              {canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, 3, true},
		"a StatefulSet":                             {canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}, 3, true},
		"a ReplicaSet":                              {canon.GVK{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, 3, true},
		"a DaemonSet wants one for each node":       {canon.GVK{Group: "apps", Version: "v1", Kind: "DaemonSet"}, 5, true},
		"a CronJob keeps none running":              {canon.GVK{Group: "batch", Version: "v1", Kind: "CronJob"}, 0, false},
		"a ConfigMap has none":                      {canon.GVK{Version: "v1", Kind: "ConfigMap"}, 0, false},
		"defect 18: the same kind of another group": {canon.GVK{Group: "shop.example", Version: "v1", Kind: "Deployment"}, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, has := w.desired(tc.gvk); got != tc.want || has != tc.has {
				t.Errorf("it wants %d (%t), want %d (%t)", got, has, tc.want, tc.has)
			}
		})
	}
}

// The pods of other workloads than Deployments name them by their uid.
func TestTheOwnerOfPods(t *testing.T) {
	w := &workload{Metadata: metav1.ObjectMeta{Name: "db", UID: "db"}}
	a := written(func(s *v1alpha1.EffectivenessAssessmentSpec) { s.Target.Kind = "StatefulSet" })
	pod := podOfWeb("db-0", true)
	if pod.OwnerReferences[0].Kind = "StatefulSet"; w.owns(a, pod) {
		t.Error("it owns a pod of another uid")
	}
	if pod.OwnerReferences[0].UID = "db"; !w.owns(a, pod) {
		t.Error("it does not own its pod")
	}
}
