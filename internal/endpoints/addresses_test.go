// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/endpoints"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func endpointSlice(service, ip string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip}}},
	}
}

// A list that fails is no empty list: a router would take the endpoints away.
func TestAddressesAreThoseOfPodsWithASplitAndOfSlicesWithout(t *testing.T) {
	broken := errors.New("broken")
	all := []client.Object{service(), pod("shop", "stable", "10.1.0.1"), pod("shop", "canary", "10.1.0.2"), endpointSlice("web", "10.1.0.1"), endpointSlice("pay", "10.1.0.9")}
	failing := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }}
	for name, tc := range map[string]struct {
		objects []client.Object
		fails   interceptor.Funcs
		arms    map[string][]netip.AddrPort
		all     []netip.AddrPort
		err     error
	}{
		"a Service with pods": {
			objects: all, all: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:8080")},
			arms: map[string][]netip.AddrPort{"stable": {netip.MustParseAddrPort("10.1.0.1:80")}, "canary": {netip.MustParseAddrPort("10.1.0.2:80")}},
		},
		"no Service":            {objects: all[1:]},
		"a list that is broken": {objects: all, fails: failing, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			c := endpoints.Counter{Reader: fake.NewClientBuilder().WithObjects(tc.objects...).WithInterceptorFuncs(tc.fails).Build()}
			same := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
			arms, err := c.FindArms(t.Context(), routertest.Split(1, 1_000), 80)
			if d := cmp.Diff(tc.arms, arms, same); d != "" || !errors.Is(err, tc.err) {
				t.Errorf("arms (-want +got), with error %v:\n%s", err, d)
			}
			addresses, err := c.FindAddresses(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, 80)
			if d := cmp.Diff(tc.all, addresses, same); d != "" || !errors.Is(err, tc.err) {
				t.Errorf("addresses (-want +got), with error %v:\n%s", err, d)
			}
		})
	}
}
