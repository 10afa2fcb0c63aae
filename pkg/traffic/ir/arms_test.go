// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func addressesOf(texts ...string) (addresses []netip.AddrPort) {
	for _, text := range texts {
		addresses = append(addresses, netip.MustParseAddrPort(text))
	}
	return addresses
}

func TestFindArms(t *testing.T) {
	pod := func(name, version string, change func(*ir.Pod)) ir.Pod {
		p := ir.Pod{
			Namespace: "shop", Name: name, Labels: map[string]string{"version": version}, Ready: true,
			Addresses: []netip.Addr{netip.MustParseAddr("10.1.0." + name)},
			Workload:  traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: "web-" + version},
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	drains := func(p *ir.Pod) { p.Terminating = true }
	unready := func(p *ir.Pod) { p.Ready = false }
	for name, tc := range map[string]struct {
		pods        []ir.Pod
		quarantined []traffic.Workload
		port        uint16
		want        map[string][]netip.AddrPort
	}{
		"ready pods alone": {
			[]ir.Pod{pod("1", "stable", nil), pod("2", "stable", drains), pod("3", "stable", unready), pod("4", "canary", nil)}, nil, 80,
			map[string][]netip.AddrPort{"stable": addressesOf("10.1.0.1:8080"), "canary": addressesOf("10.1.0.4:8080")},
		},
		"pods that drain where none is ready": {
			[]ir.Pod{pod("1", "stable", nil), pod("4", "canary", drains)}, nil, 80,
			map[string][]netip.AddrPort{"stable": addressesOf("10.1.0.1:8080"), "canary": addressesOf("10.1.0.4:8080")},
		},
		"pods that are not ready while the stable variation can take their share": {
			[]ir.Pod{pod("1", "stable", nil), pod("4", "canary", unready)}, nil, 80,
			map[string][]netip.AddrPort{"stable": addressesOf("10.1.0.1:8080"), "canary": addressesOf("10.1.0.4:8080")},
		},
		"no pod in quarantine": {
			[]ir.Pod{pod("1", "stable", nil), pod("4", "canary", nil)}, []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web-canary"}}, 80,
			map[string][]netip.AddrPort{"stable": addressesOf("10.1.0.1:8080"), "canary": nil},
		},
		"a port that the Service does not have": {[]ir.Pod{pod("1", "stable", nil)}, nil, 81, nil},
	} {
		t.Run(name, func(t *testing.T) {
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			svc.Spec.Ports[0].TargetPort.IntVal = 8080
			got := ir.FindArms(svc, routertest.Split(1, 1_000), tc.port, tc.pods, tc.quarantined)
			if d := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
				t.Errorf("arms (-want +got):\n%s", d)
			}
		})
	}
}

func TestFindAddresses(t *testing.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	endpoint := func(address string, ready, terminating bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: new(true), Terminating: &terminating}}
	}
	slice := func(service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
			Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
		}
	}
	for name, tc := range map[string]struct {
		port   uint16
		slices []*discoveryv1.EndpointSlice
		want   []netip.AddrPort
	}{
		"ready endpoints alone": {
			80, []*discoveryv1.EndpointSlice{slice("web", endpoint("10.1.0.1", true, false), endpoint("10.1.0.2", false, true)), slice("pay", endpoint("10.1.0.3", true, false))},
			addressesOf("10.1.0.1:8080"),
		},
		"endpoints that drain where none is ready": {80, []*discoveryv1.EndpointSlice{slice("web", endpoint("10.1.0.2", false, true))}, addressesOf("10.1.0.2:8080")},
		"a port that the Service does not have":    {81, []*discoveryv1.EndpointSlice{slice("web", endpoint("10.1.0.1", true, false))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := ir.FindAddresses(svc, tc.port, tc.slices, nil, nil)
			if d := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
				t.Errorf("addresses (-want +got):\n%s", d)
			}
		})
	}
}
