// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// running is a pod of the Deployment web.
func running(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-5d8-x", Labels: map[string]string{"pod-template-hash": "5d8"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d8", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "serve", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "serve", ContainerPort: 8080}, {ContainerPort: 1},
		}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd01::1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestPodOf(t *testing.T) {
	want := func(change func(*ir.Pod)) ir.Pod {
		p := ir.Pod{
			Namespace: "shop", Name: "web-5d8-x", Labels: map[string]string{"pod-template-hash": "5d8"},
			Workload: traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}, Node: "n1", Ready: true,
			Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd01::1")}, Ports: map[string]uint16{"serve": 8080},
		}
		change(&p)
		return p
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		want func(*ir.Pod)
	}{
		"one that runs":              {running(), func(*ir.Pod) {}},
		"one that is going to end":   {running(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), func(p *ir.Pod) { p.Terminating = true }},
		"one that is not ready":      {running(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown }), func(p *ir.Pod) { p.Ready = false }},
		"one that has ended":         {running(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), func(p *ir.Pod) { p.Addresses = nil }},
		"one of a ReplicaSet itself": {running(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "rs" }), func(p *ir.Pod) { p.Workload = traffic.Workload{Namespace: "shop", Kind: "ReplicaSet", Name: "rs"} }},
		"one of nobody":              {running(func(p *corev1.Pod) { p.OwnerReferences = nil }), func(p *ir.Pod) { p.Workload = traffic.Workload{Namespace: "shop", Kind: "Pod", Name: "web-5d8-x"} }},
		"a sidecar's port": {running(func(p *corev1.Pod) {
			c := corev1.Container{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 9}}}
			p.Spec.InitContainers = []corev1.Container{c, {Ports: []corev1.ContainerPort{{Name: "once", ContainerPort: 7}}}}
		}), func(p *ir.Pod) { p.Ports["side"] = 9 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(want(tc.want), ir.PodOf(tc.pod), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
				t.Errorf("the pod (-want +got):\n%s", d)
			}
		})
	}
}
