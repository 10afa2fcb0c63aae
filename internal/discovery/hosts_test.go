// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// M8 of the review of the mesh: what is known of hosts, and of the addresses behind these.
func TestOwnersAreReadOfServicesWithHostsAlone(t *testing.T) {
	pod := func(namespace, name, ip string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: at(namespace, name, 0), Status: corev1.PodStatus{Phase: phase, PodIPs: []corev1.PodIP{{IP: ip}}}}
	}
	slice := func(service string, ips ...string) *discoveryv1.EndpointSlice {
		meta := at("shop", service, 0)
		meta.Labels = map[string]string{discoveryv1.LabelServiceName: service}
		return &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: ips}}}
	}
	site := clusterService(at("shop", "site", 0), "10.0.0.1")
	site.Annotations = map[string]string{ir.HostsAnnotation: "a.example.com"}
	s := sourcesOf(t, site, clusterService(at("shop", "other", 0), "10.0.0.2"), slice("site", "10.1.0.1", "10.1.0.2", "not an address"), slice("other", "10.1.0.3"),
		pod("bank", "db-0", "10.1.0.1", corev1.PodRunning), pod("bank", "job-0", "10.1.0.2", corev1.PodSucceeded), pod("bank", "db-1", "10.1.0.3", corev1.PodRunning),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}})
	s.grants = []ir.Grant{{Namespaces: labels.Everything(), Domains: []string{"a.example.com"}}}
	in, err := s.about(t.Context(), ir.Names{{Namespace: "shop", Name: "site"}: true, {Namespace: "shop", Name: "other"}: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[netip.Addr][]types.NamespacedName{
		netip.MustParseAddr("10.1.0.1"): {{Namespace: "bank", Name: "db-0"}}, netip.MustParseAddr("10.1.0.2"): nil,
	}
	if d := cmp.Diff(want, in.Owners, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("the owners (-want +got):\n%s", d)
	}
	if in.NamespaceLabels["shop"]["team"] != "shop" || len(in.Grants) != 1 {
		t.Errorf("grants %+v, labels %v", in.Grants, in.NamespaceLabels)
	}
}
