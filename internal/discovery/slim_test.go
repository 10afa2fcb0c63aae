// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// podOfADeployment is one as the API server tells it, with a named port.
func podOfADeployment(i int) *corev1.Pod {
	name := fmt.Sprint("web-5d9c7b8f6-", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("%036d", i)), ResourceVersion: fmt.Sprint(i),
			Labels:          map[string]string{"app": "web", "pod-template-hash": "5d9c7b8f6", inject.LabelProxy: string(inject.Redirect)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d9c7b8f6", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "web", NodeName: "node-1",
			Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {ContainerPort: 9090}}}, {Name: "other", Image: "app"}},
			InitContainers: []corev1.Container{
				{Name: "once", Ports: []corev1.ContainerPort{{Name: "never", ContainerPort: 1}}},
				{Name: inject.ProxyContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "True"}, {Type: corev1.PodReady, Status: "True"}},
		},
	}
}

// What the cache keeps of a pod says the same of it as an endpoint.
func TestASlimPodIsTheSameEndpoint(t *testing.T) {
	pod := podOfADeployment(1)
	want := ir.PodOf(pod)
	slim, err := slimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ir.PodOf(slim.(*corev1.Pod)), cmp.Comparer(func(a, b ir.Pod) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
	if !inject.Injected(slim.(*corev1.Pod)) {
		t.Error("of a slim pod it is not known that it has a proxy")
	}
	pod.Spec.InitContainers = pod.Spec.InitContainers[:1]
	if slim, err := slimPod(pod); err != nil || inject.Injected(slim.(*corev1.Pod)) {
		t.Errorf("a slim pod without the sidecar has a proxy; %v", err)
	}
}

// BenchmarkPodsInTheCache says what one costs.
func BenchmarkPodsInTheCache(b *testing.B) {
	const many = 10_000
	for b.Loop() {
		kept := make([]any, many)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i], _ = slimPod(podOfADeployment(i))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "B/pod")
		runtime.KeepAlive(kept)
	}
}
