// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// shorter are the times of this test: a proxy sends its counts every ten seconds, and
	// each window has two messages of it.
	shorter = "PLUMBLINE_TIMES=window=20s,settles=2s,acknowledged=1s,counts=1s,goodbye=100ms"
	// counted is longer than it takes until a window was counted that began after the
	// acknowledgment.
	counted = 4 * time.Minute
	// askedAtOnce is how many requests each Service gets before each look. A look at the counts
	// of a busy machine may take a second, and a window must hold a hundred requests.
	askedAtOnce = 20
)

// A proxy that has acknowledged each split has listeners of somebody else, which go past
// its routes: one to a variation that has no share, and one to the stable variation,
// whose rival has half. What it counts says so; a third Service is asked as it should be.
func TestCountsThatContradictASplitAreACondition(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel()                 // it waits for long, and for nothing of others
	c := ownCluster(t, manifest) // nobody else leads
	directory := t.TempDir()
	if err := server.BuildWithTags(t.Context(), directory, "failpoints", "xds"); err != nil {
		t.Fatal(err)
	}
	r := c.launchFrom(t, filepath.Join(directory, "xds"), []string{"POD_NAME=one", shorter}, freeport.Address(t)).awaitReady(t)
	s := c.shop(t, enabled)
	services := []string{"none", "half", "fair"}
	releases := map[string]*v1alpha1.ABRelease{}
	for i, name := range services {
		s.divided(name)
		releases[name] = s.release(name, min(i, 1)*50)
	}
	s.awaitCopy()
	toNone, toHalf := freeport.Address(t), freeport.Address(t)
	proxy := s.sidecar(r, "front-0", s.copied().Data[inject.CAKey], services, s.past(toNone, "none", "canary"), s.past(toHalf, "half", "stable"))
	for i, name := range services {
		s.acknowledged(releases[name], min(i, 1)*50, "1/1")
	}
	backend.Answers(t, patience, toNone, "200 canary")
	backend.Answers(t, patience, toHalf, "200 stable")

	ask := func(want map[string]string) {
		for _, address := range []string{toNone, toHalf, proxy.front["fair"]} {
			if got := backend.Get(t, address); !strings.HasPrefix(got, want[address]) {
				t.Fatalf("%s answers %q", address, got)
			}
		}
	}
	s.contradicted(releases, map[string]bool{"none": true, "half": true}, func() {
		ask(map[string]string{toNone: "200 canary", toHalf: "200 stable", proxy.front["fair"]: "200 "})
	})
	for name, want := range map[string]string{"none": "canary has no share and answered ", "half": "canary has 50 % and answered 0 of "} {
		if _, message := holds(releases[name], v1alpha1.ConditionDegraded); !strings.Contains(message, want) {
			t.Errorf("of %s it says %q", name, message)
		}
		s.told(releases[name], want)
	}

	// Who asks as it should be is answered by both, and nothing contradicts any more.
	s.contradicted(releases, map[string]bool{"none": true}, func() {
		if got := backend.Get(t, toNone); got != "200 canary" {
			t.Fatalf("it answers %q", got)
		}
		for _, name := range []string{"half", "fair"} {
			backend.Get(t, proxy.front[name])
		}
	})
}

// contradicted asks until these releases are contradicted, and no others.
func (s *shop) contradicted(releases map[string]*v1alpha1.ABRelease, want map[string]bool, ask func()) {
	s.Helper()
	poll.Until(s.T, counted, fmt.Sprintf("these are contradicted: %v", want), func() error {
		for range askedAtOnce {
			ask()
		}
		for name, r := range releases {
			if err := s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			_, message := holds(r, v1alpha1.ConditionDegraded)
			is := v1alpha1.IsDegradedFor(r.Status.Conditions, v1alpha1.ReasonContradicted)
			if name == "fair" && is {
				s.Fatalf("%s is contradicted: %s", name, message)
			}
			if is != want[name] {
				return fmt.Errorf("%s is contradicted: %t %s; observed is %+v", name, is, message, r.Status.Observed)
			}
		}
		return nil
	})
}

// told waits for an event about a contradiction.
func (s *shop) told(r *v1alpha1.ABRelease, text string) {
	s.Helper()
	poll.Until(s.T, patience, "there is an event about "+r.Name, func() error {
		var events eventsv1.EventList
		if err := s.c.admin.List(s.Context(), &events, client.InNamespace(s.name)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "Contradicted" && e.Type == "Warning" && e.Regarding.UID == r.UID && strings.Contains(e.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
}

// past is a listener that goes past the routes, to the cluster of a variation.
func (s *shop) past(address, service, variation string) *listenerv3.Listener {
	s.Helper()
	pack := func(m proto.Message) *anypb.Any {
		packed, err := anypb.New(m)
		s.must(err)
		return packed
	}
	at := netip.MustParseAddrPort(address)
	cluster := envoyname.Slot{Namespace: s.name, Service: service, Port: 80, Variation: variation}.String()
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix: "past",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "past", ValidateClusters: wrapperspb.Bool(false), // it is discovered later
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
			}}}},
		}},
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})}}},
	}
	return &listenerv3.Listener{
		Name: address,
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: at.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(manager)},
		}}}},
	}
}
