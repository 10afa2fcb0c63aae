// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func workload(name string) traffic.Workload {
	return traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: name}
}

// pod is one of a workload, and its endpoint in the Service front.
type pod struct {
	of    string
	ready bool
}

// front is a managed Service with these pods.
func front(pods ...pod) ir.Inputs {
	http := "http"
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", Labels: map[string]string{ir.Managed: "true"}},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, AppProtocol: &http}}},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "front-1", Labels: map[string]string{discoveryv1.LabelServiceName: "front"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: new(int32(8080))}},
	}
	in := ir.Inputs{Services: []*corev1.Service{svc}, Slices: []*discoveryv1.EndpointSlice{slice}}
	for i, p := range pods {
		address := netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)})
		name := p.of + "-" + address.String()
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &p.ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name},
		})
		in.Pods = append(in.Pods, ir.Pod{
			Namespace: "shop", Name: name, Workload: workload(p.of), Addresses: []netip.Addr{address}, Ready: p.ready,
			Labels: map[string]string{"of": p.of},
		})
	}
	return in
}

// divided has a split of the Service front between two workloads, the first the stable one.
func divided(in ir.Inputs, stable, canary string) ir.Inputs {
	w, c := workload(stable), workload(canary)
	in.Splits = append(in.Splits, traffic.Split{
		Namespace: "shop", Name: "front", Service: "front", Sequence: 1,
		Variations: []traffic.Variation{{Name: "stable", Workload: &w}, {Name: "canary", Workload: &c}},
		Routing:    traffic.Routing{Shares: traffic.Shares{{Variation: "stable", Weight: 9000}, {Variation: "canary", Weight: 1000, Reserved: 1000}}},
	})
	return in
}

func TestWhatStandsAgainstAQuarantine(t *testing.T) {
	quarantined := func(in ir.Inputs, of string) ir.Inputs {
		in.Quarantined = append(in.Quarantined, workload(of))
		return in
	}
	unmanaged := func(in ir.Inputs) ir.Inputs {
		in.Services[0].Labels = nil
		return in
	}
	for name, tc := range map[string]struct {
		in   ir.Inputs
		of   string
		want string
	}{
		"another workload has ready endpoints":  {front(pod{"web", true}, pod{"api", true}), "web", ""},
		"no pod of it is ready":                 {front(pod{"web", false}, pod{"api", true}), "web", "NotServed: no Service with the label plumbline.dev/managed=true has pods of Deployment web as endpoints"},
		"it has the last ready endpoint":        {front(pod{"web", true}), "web", "LastReadyEndpoints: port 80 of Service front would have no ready endpoint: Deployment web has the last ones"},
		"the other endpoints are not ready":     {front(pod{"web", true}, pod{"api", false}), "web", "LastReadyEndpoints: "},
		"the other endpoints are in quarantine": {quarantined(front(pod{"web", true}, pod{"api", true}), "api"), "web", "LastReadyEndpoints: "},
		"it is behind no Service":               {front(pod{"api", true}), "web", "NotServed: "},
		"the Service is not in the mesh":        {unmanaged(front(pod{"web", true}, pod{"api", true})), "web", "NotServed: "},
		"a namespace without Services":          {ir.Inputs{}, "web", "NotServed: "},
		"it is the canary of a split":           {divided(front(pod{"web", true}, pod{"api", true}), "api", "web"), "web", ""},
		"it is the stable variation of a split": {divided(front(pod{"web", true}, pod{"api", true}), "web", "api"), "web", "LastReadyEndpoints: "},
	} {
		t.Run(name, func(t *testing.T) {
			of := workload(tc.of)
			got := ObstacleTo(tc.in, of).String()
			if got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
