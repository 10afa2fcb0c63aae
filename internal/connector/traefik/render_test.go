// SPDX-License-Identifier: Apache-2.0

package traefik_test

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var web = traefik.Served{
	Service: types.NamespacedName{Namespace: "shop", Name: "web"}, Port: 80,
	Route: traefik.Route{Rule: "Host(`shop.example`) || Host(`www.shop.example`)", EntryPoints: []string{"web"}},
}

func addresses(of ...string) (all []netip.AddrPort) {
	for _, a := range of {
		all = append(all, netip.MustParseAddrPort(a))
	}
	return all
}

// split without a key.
func split(sequence uint64, canary traffic.Weight) traffic.Split {
	s := routertest.Split(sequence, canary)
	s.Key = traffic.Key{}
	return s
}

func forced(s traffic.Split) traffic.Split {
	s.Override = "x-variation"
	s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "a 'b' \"c\" `d` $HOME \\": "canary", "staff": "stable"}}
	return s
}

func port(served traefik.Served, s *traffic.Split) traefik.Port {
	return traefik.Port{
		Served: served, Split: s, All: addresses("10.0.0.2:8080", "10.0.0.1:8080"),
		Arms: map[string][]netip.AddrPort{"stable": addresses("10.0.0.2:8080", "10.0.0.1:8080", "10.0.0.2:8080"), "canary": addresses("[fd00::1]:8080")},
	}
}

func TestRenderedConfigurations(t *testing.T) {
	plain, weighted, headers := split(7, 0), split(7, 1), forced(split(7, 2_500))
	grpc, noRule, starting := web, web, port(web, &weighted)
	grpc.HTTP2, noRule.Route = true, traefik.Route{}
	delete(starting.Arms, "canary")
	for name, ports := range map[string][]traefik.Port{
		"undivided":                {port(web, nil)},
		"all-at-stable":            {port(noRule, &plain)},
		"smallest-share":           {port(web, &weighted)},
		"headers":                  {port(web, &headers)},
		"http2":                    {port(grpc, &weighted)},
		"canary-without-endpoints": {starting},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := traefik.Render(ports)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/"+name+".json", got)
		})
	}
	if got, err := traefik.Render(nil); err != nil || string(got) != "{}\n" {
		t.Errorf("of no ports %q (%v)", got, err)
	}
}

func TestSplitsThatTraefikCannotCarryOut(t *testing.T) {
	can, other := connectors.Traefik.Capabilities, web
	other.Route = traefik.Route{}
	change := func(do func(*traffic.Split)) traffic.Split {
		s := split(1, 1_000)
		do(&s)
		return s
	}
	for name, tc := range map[string]struct {
		split  traffic.Split
		served traefik.Served
		want   string // "" for none
	}{
		"a split by weights":         {split(1, 1_000), web, ""},
		"headers with a route":       {forced(split(1, 1_000)), web, ""},
		"headers without a route":    {forced(split(1, 1_000)), other, "port 80 of Service shop/web has no route"},
		"a Service that is not here": {change(func(s *traffic.Split) { s.Service = "pay" }), web, "serves no port of Service shop/pay"},
		"visitors that stay":         {routertest.Split(1, 1_000), web, "Sticky: header x-user would keep visitors"},
		"a header with a quote":      {change(func(s *traffic.Split) { s.Override = "x\"y" }), web, "is no name of a header"},
		"a value with a newline": {change(func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"a\nb": "canary"}}
		}), web, "is no value that Traefik can compare"},
		"an empty value": {change(func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"": "canary"}}
		}), web, "is no value that Traefik can compare"},
		"weights that are not the whole": {change(func(s *traffic.Split) { s.Shares[0].Weight-- }), web, "10000"},
	} {
		t.Run(name, func(t *testing.T) {
			err := traefik.Check(tc.split, can, []traefik.Served{tc.served})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
