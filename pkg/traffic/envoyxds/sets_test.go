// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"net/netip"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// web is a service with one HTTP port.
func web(routing *traffic.Routing, slots ...ir.Slot) ir.Service {
	return ir.Service{
		Namespace: "shop", Name: "web", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		Ports: []ir.Port{{Name: "http", Number: 80, Protocol: ir.HTTP, Slots: slots}}, Routing: routing,
	}
}

func at(address string, state ir.State, place ...string) ir.Endpoint {
	e := ir.Endpoint{Address: netip.MustParseAddrPort(address), State: state}
	if len(place) == 2 {
		e.Locality = ir.Locality{Region: place[0], Zone: place[1]}
	}
	return e
}

func slot(variation string, endpoints ...ir.Endpoint) ir.Slot {
	return ir.Slot{Variation: variation, Endpoints: endpoints}
}

// split of web between stable, which has an endpoint, and canary, which has one as well.
func split(kind traffic.KeyKind, name string, canary traffic.Weight, changes ...func(*traffic.Routing)) ir.Service {
	r := &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
		Key:    traffic.Key{Kind: kind, Name: name}, Salt: "s1",
	}
	for _, change := range changes {
		change(r)
	}
	s := web(r, slot("stable", at("10.1.0.1:8080", ir.Ready)), slot("canary", at("10.1.0.2:8080", ir.Ready)))
	s.Sequence = 7
	return s
}

func forced(r *traffic.Routing) {
	r.Override = "x-variation"
	r.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "staff, too": "stable"}}
}

// sets are the features, each of which has a golden file.
func sets() map[string]ir.Mesh {
	one := func(services ...ir.Service) ir.Mesh { return ir.Mesh{Services: services} }
	both := web(nil, slot("", at("10.1.0.1:8080", ir.Ready)))
	both.Addresses = append(both.Addresses, netip.MustParseAddr("fd00::1"))
	both.Ports = []ir.Port{
		{Name: "grpc", Number: 9090, Protocol: ir.HTTP2, Slots: []ir.Slot{slot("", at("[fd01::1]:9090", ir.Ready))}},
		{Name: "db", Number: 5432, Protocol: ir.TCP},
	}
	three := split(traffic.ByVisitor, "visitor", 0)
	three.Routing.Shares = traffic.Shares{
		{Variation: "stable", Weight: 7_500}, {Variation: "b", Weight: 2_000, Reserved: 3_000}, {Variation: "c", Weight: 500, Reserved: 5_000},
	}
	three.Ports[0].Slots = []ir.Slot{slot("stable", at("10.1.0.1:8080", ir.Ready)), slot("b"), slot("c")}
	notReady := split(traffic.PerRequest, "", 1_000)
	notReady.Ports[0].Slots = []ir.Slot{slot("stable", at("10.1.0.1:8080", ir.Ready)), slot("canary", at("10.1.0.2:8080", ir.Unready))}
	set := split(traffic.PerRequest, "", 1_000)
	set.Settings = ir.Settings{RequestTimeout: 30 * time.Second, IdleTimeout: 500 * time.Millisecond, ConnectTimeout: 2 * time.Second, RetriesOff: true}
	return map[string]ir.Mesh{
		"settings":                          one(set),
		"a service":                         one(web(nil, slot("", at("10.1.0.1:8080", ir.Ready), at("10.1.0.2:9090", ir.Ready)))),
		"two families and gRPC":             one(both),
		"no endpoints":                      one(web(nil, slot(""))),
		"localities":                        one(web(nil, slot("", at("10.1.0.1:8080", ir.Ready, "r", "z1"), at("10.1.0.2:8080", ir.Ready, "r", "z2"), at("10.1.0.3:8080", ir.Ready, "r", "z1"), at("10.1.0.4:8080", ir.Ready)))),
		"draining and quarantined":          one(web(nil, slot("", at("10.1.0.1:8080", ir.Ready), at("10.1.0.2:8080", ir.Draining), at("10.1.0.3:8080", ir.Quarantined)))),
		"only draining and quarantined":     one(web(nil, slot("", at("10.1.0.2:8080", ir.Draining), at("10.1.0.3:8080", ir.Quarantined)))),
		"split per request":                 one(split(traffic.PerRequest, "", 1_000)),
		"split by header":                   one(split(traffic.ByHeader, "x-user", 1_000)),
		"split by cookie":                   one(split(traffic.ByCookie, "connect.sid", 1_000)),
		"split by visitor":                  one(split(traffic.ByVisitor, "visitor", 1_000)),
		"split with attributes of a cookie": one(split(traffic.ByVisitor, "__Secure-visitor", 1_000, func(r *traffic.Routing) { r.Key.Domain, r.Key.Secure = "example.com", true })),
		"split with a cookie to escape":     one(split(traffic.ByVisitor, "a%$.*+^|b", 1_000)),
		"split with nothing for a canary":   one(split(traffic.ByVisitor, "visitor", 0)),
		"split with all for a canary":       one(split(traffic.ByVisitor, "visitor", traffic.Total)),
		"split in three ranges":             one(three),
		"split with a canary not ready":     one(notReady),
		"split with forced requests":        one(split(traffic.ByVisitor, "visitor", 1_000, forced)),
	}
}
