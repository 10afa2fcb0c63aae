// SPDX-License-Identifier: Apache-2.0

package portset

import (
	"net/netip"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Web is port 80 of Service shop/web, which no split divides.
func Web(own ...string) envoyxds.Port {
	return envoyxds.Port{
		Namespace: "shop", Service: "web", Number: 80, Protocol: ir.HTTP, Connect: time.Second, Idle: time.Second,
		Arms: []envoyxds.Arm{{Own: Addresses(own...)}},
	}
}

// Addresses parses endpoints, and panics on a text that is none.
func Addresses(texts ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

// Divided is the port of Web with a split: the canary has the weight, and changes come last.
func Divided(key traffic.Key, canary traffic.Weight, changes ...func(*envoyxds.Port)) envoyxds.Port {
	p := Web()
	p.Sequence = 7
	p.Division = &envoyxds.Division{Key: key, Salt: "s1", Segments: Segments(canary)}
	if key.Kind == traffic.PerRequest {
		p.Division.Salt = ""
	}
	stable := Addresses("10.1.0.1:8080", "10.1.0.2:8080")
	p.Arms = []envoyxds.Arm{{Variation: "canary", Own: Addresses("10.1.0.3:8080"), Failover: stable}, {Variation: "stable", Own: stable}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// Segments is the layout of a canary with a weight and its whole range.
func Segments(canary traffic.Weight) []traffic.Segment {
	return traffic.Shares{
		{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total},
	}.Layout()
}

// Force has requests go by a header named for tests, and by the value of another one.
func Force(p *envoyxds.Port) {
	p.Division.Forced = []envoyxds.Forced{
		{Header: "x-variation", Value: "stable", Variation: "stable"}, {Header: "x-variation", Value: "canary", Variation: "canary"},
		{Header: "x-group", Value: "a 'b' $HOME #c", Variation: "stable"}, {Header: "x-group", Value: "beta", Variation: "canary"},
	}
	p.Arms = []envoyxds.Arm{
		p.Arms[0], {Variation: "canary", Forced: true, Own: p.Arms[0].Own}, p.Arms[1], {Variation: "stable", Forced: true, Own: p.Arms[1].Own},
	}
}

// AddThird makes three variations, each in a range of its own.
func AddThird(p *envoyxds.Port) {
	p.Division.Segments = traffic.Shares{
		{Variation: "stable", Weight: 9_400}, {Variation: "canary", Weight: 500, Reserved: 3_000}, {Variation: "next", Weight: 100, Reserved: 2_000},
	}.Layout()
	p.Arms = append(p.Arms, envoyxds.Arm{Variation: "next", Own: Addresses("10.1.0.4:8080"), Failover: p.Arms[0].Failover})
}

// The keys of visitors.
var (
	ByHeader  = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}
	ByCookie  = traffic.Key{Kind: traffic.ByCookie, Name: "session"}
	ByVisitor = traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}
)

// Differences are what programs can carry out and others refuse.
type Differences struct {
	// RetriesOff turns retries off.
	RetriesOff bool
	// Cookie is the name of a cookie with unusual characters.
	Cookie string
}

// Sets returns ports by the name of the feature that they show.
func Sets(d Differences) map[string][]envoyxds.Port {
	with := func(p envoyxds.Port, change func(*envoyxds.Port)) []envoyxds.Port {
		change(&p)
		return []envoyxds.Port{p}
	}
	return map[string][]envoyxds.Port{
		"no-ports":          nil,
		"a-service":         {Web("10.1.0.1:8080", "[fd00::1]:8080")},
		"no-endpoints":      {Web()},
		"a-service-is-gone": with(Web(), func(p *envoyxds.Port) { p.Unavailable, p.Arms = true, nil }),
		"two-ports-and-gRPC": {Web("10.1.0.1:8080"), with(Web("10.1.0.1:9090"), func(p *envoyxds.Port) {
			p.Number, p.Protocol = 9090, ir.HTTP2
		})[0]},
		"settings": with(Web("10.1.0.1:8080"), func(p *envoyxds.Port) {
			p.Connect, p.Idle, p.RetriesOff = 250*time.Millisecond, 30*time.Second, d.RetriesOff
		}),
		"split-per-request": {Divided(traffic.Key{}, 500)},
		"split-by-header":   {Divided(ByHeader, 500)},
		"split-by-cookie":   {Divided(ByCookie, 500)},
		"split-by-visitor":  {Divided(ByVisitor, 500)},
		"split-with-attributes-of-a-cookie": {Divided(traffic.Key{
			Kind: traffic.ByVisitor, Name: d.Cookie, Domain: "example.com", Secure: true,
		}, 500, Force)},
		"split-with-forced-requests":       {Divided(ByHeader, 500, Force)},
		"split-in-three-ranges":            {Divided(ByHeader, 0, AddThird)},
		"split-with-nothing-for-a-canary":  {Divided(ByHeader, 0)},
		"split-with-all-for-a-canary":      {Divided(ByHeader, traffic.Total)},
		"split-with-a-canary-without-pods": with(Divided(ByHeader, 500), func(p *envoyxds.Port) { p.Arms[0].Own = nil }),
	}
}
