// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	grpcstatsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience is generous, the machine is shared; an Envoy connects anew within seconds.
const patience = 60 * time.Second

// A call of gRPC, as Envoy knows one.
const (
	grpcType = "application/grpc"
	grpcPath = "/cart.Cart/"
)

// ask sends a request to a port of the proxy; 0 is no answer.
func ask(method string, port int, path string) (code int, body string) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	if strings.HasPrefix(path, grpcPath) {
		request.Header.Set("Content-Type", grpcType)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(raw)
}

func address(port int) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: loopback, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}, //nolint:gosec // a port
	}}}
}

// cluster with one endpoint.
func cluster(name string, port int) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
				Endpoint: &endpointv3.Endpoint{Address: address(port)},
			}}},
		}}},
	}
}

// listenerFor sends /forced to one cluster and everything else to another.
func listenerFor(t *testing.T, port int, forced, other string) *listenerv3.Listener {
	pack := func(m proto.Message) *anypb.Any {
		packed, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	route := func(prefix, to string) *routev3.Route {
		return &routev3.Route{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: to}}},
		}
	}
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix: "outbound",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{
			Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{route("/forced", forced), route("/", other)},
		}}}},
		HttpFilters: []*hcmv3.HttpFilter{{
			// As translation has it.
			Name: "envoy.filters.http.grpc_stats", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&grpcstatsv3.FilterConfig{
				PerMethodStatSpecifier: &grpcstatsv3.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
			})},
		}, {
			Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})},
		}},
	}
	return &listenerv3.Listener{
		Name: "upstream", Address: address(port),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(manager)},
		}}}},
	}
}

// TestARealEnvoyAsASidecar is the life of one: it shows its token, waits for its
// configuration, says that it is ready, lets nobody end it, and tells what it counted.
func TestARealEnvoyAsASidecar(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		const slot, forced = "shop/cart|80|b", "shop/cart|80|b|forced"
		s, upstream := newSidecar(t, loopback), freeport.For(t)
		serving, authority := envoy.NewServing(t)
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Content-Type") == grpcType {
				w.Header().Set("Content-Type", grpcType)
				w.Header().Set("Grpc-Status", "14")
			}
		}))
		t.Cleanup(backend.Close)
		backendPort := portOf(t, backend.URL)
		plane := newControlPlane(map[string]proto.Message{
			slot: cluster(slot, backendPort), forced: cluster(forced, backendPort),
			"upstream": listenerFor(t, upstream, forced, slot),
		})
		t.Cleanup(plane.serve(t, s.plane, serving))
		token := "TOKEN-1" // as the kubelet writes it
		if envoy.Minor(t) >= 40 {
			token += "\n" // as others might; an older Envoy takes no such value for a header
		}
		s.project(t, token, authority)
		s.start(t)

		poll.Until(t, patience, "the stream is there", func() error {
			if _, streams := plane.seen(); !slices.Equal(streams, []string{"shop/web-1/u-1 Bearer TOKEN-1"}) {
				return fmt.Errorf("streams %q", streams)
			}
			return nil
		})
		if code, _ := ask(http.MethodGet, s.status, "/ready"); code != 0 {
			t.Errorf("without a configuration it answers %d to /ready", code)
		}
		close(plane.released)
		poll.Until(t, patience, "it is ready", func() error {
			if code, body := ask(http.MethodGet, s.status, "/ready"); code != http.StatusOK {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
		if code, body := ask(http.MethodGet, upstream, "/"); code != http.StatusOK {
			t.Errorf("ready, but a request gets %d %s", code, body)
		}
		answersOnlyWhatReads(t, s)
		tellsWhatItCounts(t, plane, upstream, slot)
	})
}

func answersOnlyWhatReads(t *testing.T, s *sidecar) {
	t.Helper()
	if code, body := ask(http.MethodGet, s.status, "/metrics"); code != http.StatusOK || !strings.Contains(body, "envoy_server_live") {
		t.Errorf("/metrics: %d %.200s", code, body)
	}
	for what, tc := range map[string]struct {
		port         int
		method, path string
		want         int
	}{
		"another page of the admin from outside": {s.status, http.MethodGet, "/config_dump", http.StatusNotFound},
		"a path that is made to look so":         {s.status, http.MethodGet, "/metrics/../quitquitquit", http.StatusNotFound},
		"a post to the metrics":                  {s.status, http.MethodPost, "/metrics", http.StatusNotFound},
		"an end by the application":              {s.admin, http.MethodPost, "/quitquitquit", http.StatusForbidden},
		"a failed health check by it":            {s.admin, http.MethodPost, "/healthcheck/fail", http.StatusForbidden},
		"another runtime by it":                  {s.admin, http.MethodPost, "/runtime_modify?a=b", http.StatusForbidden},
		"a look by it":                           {s.admin, http.MethodGet, "/clusters", http.StatusOK},
	} {
		if code, body := ask(tc.method, tc.port, tc.path); code != tc.want {
			t.Errorf("%s: %d %.200s, want %d", what, code, body, tc.want)
		}
	}
}

// tellsWhatItCounts: the requests of the slot, among them calls that failed as gRPC
// says and HTTP does not; nothing of forced requests, nor of the control plane's own
// cluster.
func tellsWhatItCounts(t *testing.T, plane *controlPlane, upstream int, slot string) {
	t.Helper()
	const more = 20
	for range more {
		ask(http.MethodGet, upstream, "/")
		ask(http.MethodPost, upstream, grpcPath+"Get")
		ask(http.MethodGet, upstream, "/forced")
	}
	poll.Until(t, patience, "all requests are counted", func() error {
		got := plane.counted()
		want := counts{requests: 2*more + 1, buckets: 33, grpcFailures: more, clusters: []string{slot}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(counts{})); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestARealEnvoyTakesANewTokenAndANewAuthority without a restart: the next stream is
// to a server that the old bundle does not know, with a token that was not there.
func TestARealEnvoyTakesANewTokenAndANewAuthority(t *testing.T) {
	s, plane := newSidecar(t, loopback), newControlPlane(nil)
	close(plane.released)
	before, beforePEM := envoy.NewServing(t)
	after, afterPEM := envoy.NewServing(t)
	stop := plane.serve(t, s.plane, before)
	t.Cleanup(stop)
	s.project(t, "TOKEN-1", beforePEM)
	s.start(t)
	streamWith := func(token string) {
		t.Helper()
		poll.Until(t, patience, "a stream with "+token, func() error {
			if _, streams := plane.seen(); !slices.Contains(streams, "shop/web-1/u-1 Bearer "+token) {
				return fmt.Errorf("streams %q", streams)
			}
			return nil
		})
	}
	streamWith("TOKEN-1")
	s.project(t, "TOKEN-2", afterPEM)
	stop()
	t.Cleanup(plane.serve(t, s.plane, after))
	streamWith("TOKEN-2")
}

// TestARealEnvoyShowsItsTokenToNobodyElse: neither to another name nor to another
// authority.
func TestARealEnvoyShowsItsTokenToNobodyElse(t *testing.T) {
	serving, ours := envoy.NewServing(t)
	_, others := envoy.NewServing(t)
	for name, tc := range map[string]struct {
		host      string
		authority []byte
	}{
		"another name":      {"127.0.0.2", ours},
		"another authority": {loopback, others},
	} {
		t.Run(name, func(t *testing.T) {
			s, plane := newSidecar(t, tc.host), newControlPlane(nil)
			t.Cleanup(plane.serve(t, s.plane, serving))
			s.project(t, "TOKEN-1", tc.authority)
			s.start(t)
			poll.True(t, patience, "it has tried three times", func() bool {
				hellos, _ := plane.seen()
				return hellos >= 3
			})
			if _, streams := plane.seen(); len(streams) > 0 {
				t.Errorf("there are streams: %q", streams)
			}
		})
	}
}
