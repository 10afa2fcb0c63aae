// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func withHosts(hosts string) *corev1.Service {
	return web(func(s *corev1.Service) { s.Annotations = map[string]string{ir.HostsAnnotation: hosts} })
}

// M8 of the review of the mesh: the first claim was the only one.
func TestAHostBelongsToTheNamespaceThatItWasGivenTo(t *testing.T) {
	all, shop, bank := labels.Everything(), labels.SelectorFromSet(labels.Set{"team": "shop"}), labels.SelectorFromSet(labels.Set{"team": "bank"})
	const refused = "Service shop/web: HostNotGranted: gateways do not serve it as "
	const mend = ", which does not belong to its namespace. Take it out of the annotation plumbline.dev/hosts, or let the platform add it to gateway.hosts of the chart"
	for name, tc := range map[string]struct {
		grants   []ir.Grant
		host     string
		want     []string
		problems string
	}{
		"without grants any":               {nil, "a.example.com", []string{"web a.example.com=80"}, ""},
		"with its name":                    {[]ir.Grant{{bank, []string{"b.example.com"}}, {shop, []string{"a.example.com"}}}, "a.example.com", []string{"web a.example.com=80"}, ""},
		"below a domain":                   {[]ir.Grant{{shop, []string{"*.example.com"}}}, "a.b.example.com", []string{"web a.b.example.com=80"}, ""},
		"as a wildcard below a domain":     {[]ir.Grant{{shop, []string{"*.example.com"}}}, "*.b.example.com", []string{"web *.b.example.com=80"}, ""},
		"as the wildcard itself":           {[]ir.Grant{{all, []string{"*.example.com"}}}, "*.example.com", []string{"web *.example.com=80"}, ""},
		"but not as the domain itself":     {[]ir.Grant{{shop, []string{"*.example.com"}}}, "example.com", nil, refused + "example.com" + mend},
		"nor as what only ends alike":      {[]ir.Grant{{shop, []string{"*.example.com"}}}, "badexample.com", nil, refused + "badexample.com" + mend},
		"nor as a wildcard around a name":  {[]ir.Grant{{shop, []string{"a.example.com"}}}, "*.example.com", nil, refused + "*.example.com" + mend},
		"nor as that of another namespace": {[]ir.Grant{{bank, []string{"a.example.com"}}}, "a.example.com", nil, refused + "a.example.com" + mend},
	} {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{withHosts(tc.host)}, Grants: tc.grants, NamespaceLabels: map[string]map[string]string{"shop": {"team": "shop"}}})
			if d := cmp.Diff(tc.want, hosts(m)); d != "" {
				t.Errorf("the hosts (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}

// M8 of the review of the mesh: a Service without a selector published a pod of another tenant.
func TestGatewaysServeNoPodOfAnotherNamespace(t *testing.T) {
	foreign, own := types.NamespacedName{Namespace: "bank", Name: "db-0"}, types.NamespacedName{Namespace: "shop", Name: "web-0"}
	slice := slice(discoveryv1.AddressTypeIPv4, 8080, "10.1.0.1 ready", "10.1.0.2 ready", "10.1.0.3 ready")
	owners := map[netip.Addr][]types.NamespacedName{
		netip.MustParseAddr("10.1.0.1"): {own},
		netip.MustParseAddr("10.1.0.2"): {foreign},
		netip.MustParseAddr("10.1.0.3"): {foreign, own}, // both on the network of one node
	}
	for name, tc := range map[string]struct {
		hosts    string
		want     []string
		problems string
	}{
		"with hosts": {"a.example.com", []string{"10.1.0.1:8080", "10.1.0.3:8080"},
			"Service shop/web: ForeignEndpoint: its endpoint 10.1.0.2 is pod bank/db-0 of another namespace, which a Service of gateways cannot have: take it out of its EndpointSlices, or remove the annotation plumbline.dev/hosts"},
		"without hosts": {"", []string{"10.1.0.1:8080", "10.1.0.2:8080", "10.1.0.3:8080"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{withHosts(tc.hosts)}, Slices: []*discoveryv1.EndpointSlice{slice}, Owners: owners})
			var got []string
			for _, e := range m.Services[0].Ports[0].Slots[0].Endpoints {
				got = append(got, e.Address.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the endpoints (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}
