// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"net/netip"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// web is port 80 of Service shop/web, which no split divides.
func web(own ...string) envoyxds.Port {
	return envoyxds.Port{
		Namespace: "shop", Service: "web", Number: 80, Protocol: ir.HTTP, Connect: time.Second, Idle: time.Second,
		Arms: []envoyxds.Arm{{Own: addresses(own...)}},
	}
}

func addresses(texts ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

// divided is that port of which the canary has so much; changes come last.
func divided(key traffic.Key, canary traffic.Weight, changes ...func(*envoyxds.Port)) envoyxds.Port {
	p := web()
	p.Sequence = 7
	p.Division = &envoyxds.Division{Key: key, Salt: "s1", Segments: segments(canary)}
	if key.Kind == traffic.PerRequest {
		p.Division.Salt = ""
	}
	stable := addresses("10.1.0.1:8080", "10.1.0.2:8080")
	p.Arms = []envoyxds.Arm{{Variation: "canary", Own: addresses("10.1.0.3:8080"), Failover: stable}, {Variation: "stable", Own: stable}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// segments of a canary that has its whole range.
func segments(canary traffic.Weight) []traffic.Segment {
	return traffic.Shares{
		{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total},
	}.Layout()
}

// forced has requests go by a header named for tests, and by the value of another one.
func forced(p *envoyxds.Port) {
	p.Division.Forced = []envoyxds.Forced{
		{Header: "x-variation", Value: "stable", Variation: "stable"}, {Header: "x-variation", Value: "canary", Variation: "canary"},
		{Header: "x-group", Value: "a 'b' $HOME #c", Variation: "stable"}, {Header: "x-group", Value: "beta", Variation: "canary"},
	}
	p.Arms = []envoyxds.Arm{
		p.Arms[0], {Variation: "canary", Forced: true, Own: p.Arms[0].Own}, p.Arms[1], {Variation: "stable", Forced: true, Own: p.Arms[1].Own},
	}
}

// three variations, each in a range of its own.
func three(p *envoyxds.Port) {
	p.Division.Segments = traffic.Shares{
		{Variation: "stable", Weight: 9_400}, {Variation: "canary", Weight: 500, Reserved: 3_000}, {Variation: "next", Weight: 100, Reserved: 2_000},
	}.Layout()
	p.Arms = append(p.Arms, envoyxds.Arm{Variation: "next", Own: addresses("10.1.0.4:8080"), Failover: p.Arms[0].Failover})
}

var (
	byHeader  = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}
	byCookie  = traffic.Key{Kind: traffic.ByCookie, Name: "session"}
	byVisitor = traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}
)

// sets of ports, one for each feature.
func sets() map[string][]envoyxds.Port {
	with := func(p envoyxds.Port, change func(*envoyxds.Port)) []envoyxds.Port {
		change(&p)
		return []envoyxds.Port{p}
	}
	return map[string][]envoyxds.Port{
		"no-ports":          nil,
		"a-service":         {web("10.1.0.1:8080", "[fd00::1]:8080")},
		"no-endpoints":      {web()},
		"a-service-is-gone": with(web(), func(p *envoyxds.Port) { p.Unavailable, p.Arms = true, nil }),
		"two-ports-and-gRPC": {web("10.1.0.1:8080"), with(web("10.1.0.1:9090"), func(p *envoyxds.Port) {
			p.Number, p.Protocol = 9090, ir.HTTP2
		})[0]},
		"settings": with(web("10.1.0.1:8080"), func(p *envoyxds.Port) {
			p.Connect, p.Idle = 250*time.Millisecond, 30*time.Second
		}),
		"split-per-request": {divided(traffic.Key{}, 500)},
		"split-by-header":   {divided(byHeader, 500)},
		"split-by-cookie":   {divided(byCookie, 500)},
		"split-by-visitor":  {divided(byVisitor, 500)},
		"split-with-attributes-of-a-cookie": {divided(traffic.Key{
			Kind: traffic.ByVisitor, Name: "a.b-c", Domain: "example.com", Secure: true,
		}, 500, forced)},
		"split-with-forced-requests":       {divided(byHeader, 500, forced)},
		"split-in-three-ranges":            {divided(byHeader, 0, three)},
		"split-with-nothing-for-a-canary":  {divided(byHeader, 0)},
		"split-with-all-for-a-canary":      {divided(byHeader, traffic.Total)},
		"split-with-a-canary-without-pods": with(divided(byHeader, 500), func(p *envoyxds.Port) { p.Arms[0].Own = nil }),
	}
}
