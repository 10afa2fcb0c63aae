// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// Finding H4: a DaemonSet's pod on a dead node held a release for ever.
func TestWhyAPodIsNotExpectedToAnswer(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		full := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		full.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready, Message: "long"}}
		slim, err := slimNode(full)
		if err != nil {
			t.Fatal(err)
		}
		return slim.(*corev1.Node) //nolint:forcetypeassert // it was one
	}
	s := sourcesOf(t, node("alive", corev1.ConditionTrue), node("unknown", corev1.ConditionUnknown), node("broken", corev1.ConditionFalse))
	on := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a pod that is Ready":            {podThat(on("alive")), ""},
		"a pod that is not":              {podThat(on("alive"), unready), "its pod is not Ready"},
		"on a node of which none hears":  {podThat(on("unknown")), "its node unknown is not Ready"},
		"on a node that is broken":       {podThat(on("broken"), unready), "its node broken is not Ready"},
		"on a node that is gone":         {podThat(on("former")), "its node former is gone"},
		"a pod that has no node yet":     {podThat(), ""},
		"not Ready, and without a node":  {podThat(unready), "its pod is not Ready"},
		"without a word about readiness": {podThat(func(p *corev1.Pod) { p.Status.Conditions = nil }), "its pod is not Ready"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.fitness(t.Context())(tc.pod); got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// Finding H6: the status did not say who could send requests to the Service, and who does.
func TestPodsOfANamespaceAreCountedByWhatTheirProxiesDo(t *testing.T) {
	pod := func(name string, changes ...func(*corev1.Pod)) corev1.Pod {
		p := podThat(changes...)
		p.Name, p.UID = name, types.UID(name)
		return *p
	}
	inject := func(p *corev1.Pod) { proxied(p) }
	pods := []corev1.Pod{
		pod("bare"), pod("idle", inject), pod("routes", inject), pod("ends", inject, ending),
		pod("starts", inject, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
	}
	wanted := []acknowledged.Wanted{{Proxy: acknowledged.Proxy{UID: "routes"}}, {Proxy: acknowledged.Proxy{UID: "elsewhere"}}, {Proxy: acknowledged.Proxy{UID: "starts"}}}
	scopes := NewDirectory(nil, &cluster{}, nil, nil).scopes()
	if diff := cmp.Diff(traffic.Population{Pods: 3, Proxied: 2, Routing: 1}, around(pods, scopes, wanted)); diff != "" {
		t.Error(diff)
	}
}
