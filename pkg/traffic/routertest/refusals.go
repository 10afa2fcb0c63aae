// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"errors"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func refusals() []check {
	return []check{
		{"a router declares its capabilities, no more and no less", every, testDeclares},
		{"a split is refused by the name of the capability that is missing, and only then", every, testRefusals},
	}
}

func testDeclares(b *bench) {
	if d := cmp.Diff(b.Capabilities, b.router().Capabilities()); d != "" {
		b.Errorf("the router declares other capabilities (-maker +router):\n%s", d)
	}
}

// testRefusals asks for one capability at a time.
func testRefusals(b *bench) {
	has := b.Capabilities
	for _, demand := range []struct {
		what       string
		capability traffic.Capability
		has        bool
		change     func(*traffic.Split)
	}{
		{"visitors known by a header", traffic.CapabilitySticky, has.Sticky, func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"} }},
		{"visitors known by a cookie", traffic.CapabilitySticky, has.Sticky, func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByCookie, Name: "session"} }},
		{"visitors who are given a cookie", traffic.CapabilityAnonymousVisitors, has.AnonymousVisitors, func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"} }},
		{"values of a header", traffic.CapabilityHeaderMap, has.HeaderMap, func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
		}},
		{"an override", traffic.CapabilityOverride, has.Override, func(s *traffic.Split) { s.Override = "x-variation" }},
		{"the smallest share of all", traffic.CapabilityResolution, has.Resolution == 1, func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = traffic.Total-1, 1 }},
		{"the smallest rest of all", traffic.CapabilityResolution, has.Resolution == 1, func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 1, traffic.Total-1 }},
		{"the smallest share of the router", traffic.CapabilityResolution, true, func(s *traffic.Split) {
			s.Shares[0].Weight, s.Shares[1].Weight = traffic.Total-has.Resolution, has.Resolution
		}},
	} {
		split := b.split(1, 1_000)
		split.Key = traffic.Key{}
		demand.change(&split)
		err := b.router().Validate(split)
		if demand.has {
			if err != nil {
				b.Errorf("with %s the split is refused: %v", demand.what, err)
			}
			continue
		}
		if !lacks(err, demand.capability) {
			b.Errorf("with %s the split gets %v, want a refusal that names %s", demand.what, err, demand.capability)
		}
		if err := b.router().Apply(b.Context(), split); !lacks(err, demand.capability) {
			b.Errorf("with %s the split is applied with %v, want a refusal that names %s", demand.what, err, demand.capability)
		}
	}
	b.nothingInForce()
}

// lacks tells whether an error names a capability.
func lacks(err error, capability traffic.Capability) bool {
	var incapable *traffic.IncapableError
	return errors.As(err, &incapable) && slices.ContainsFunc(incapable.Lacks, func(l traffic.Lack) bool { return l.Capability == capability })
}
