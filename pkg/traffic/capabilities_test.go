// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// half is a split of two variations that needs no capability.
func half(change func(*traffic.Split)) traffic.Split {
	s := traffic.Split{Routing: traffic.Routing{Shares: traffic.Shares{{Variation: "stable", Weight: 5_000}, {Variation: "canary", Weight: 5_000}}}}
	change(&s)
	return s
}

func TestASplitIsRefusedByTheNamesOfWhatIsMissing(t *testing.T) {
	weights := traffic.Capabilities{Resolution: 1}
	for name, tc := range map[string]struct {
		can   traffic.Capabilities
		split traffic.Split
		want  string
	}{
		"weights alone need no capability": {weights, half(func(*traffic.Split) {}), ""},
		"all is possible with all": {traffic.FullCapabilities(), half(func(s *traffic.Split) {
			s.Key, s.Override = traffic.Key{Kind: traffic.ByVisitor, Name: "v"}, "x-variation"
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
			s.Shares[0].Weight, s.Shares[1].Weight = 9_999, 1
		}), ""},
		"a header keeps visitors": {
			weights, half(func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"} }),
			"the router lacks the capability Sticky: header x-user would keep visitors on a variation; remove sticky from the split",
		},
		"a cookie keeps visitors": {
			weights, half(func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByCookie, Name: "session"} }),
			"the router lacks the capability Sticky: cookie session would keep visitors on a variation; remove sticky from the split",
		},
		"a cookie of the router": {
			traffic.Capabilities{Sticky: true, Resolution: 1}, half(func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "v"} }),
			"the router lacks the capability AnonymousVisitors: the router would give cookie v to visitors; keep visitors by a header or a cookie of the application",
		},
		"a key of an unknown kind": {
			traffic.FullCapabilities(), half(func(s *traffic.Split) { s.Key.Kind = 9 }), "the router lacks the capability Sticky: the kind 9 of a key is unknown",
		},
		"a header match and an override": {
			weights, half(func(s *traffic.Split) {
				s.Override, s.Match = "x-variation", traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
			}),
			"the router lacks the capability HeaderMap: values of header x-group select variations; remove the header match from the split; " +
				"the router lacks the capability Override: header x-variation names a variation; remove the override from the split",
		},
		"a share below the smallest one": {
			traffic.Capabilities{Resolution: 10}, half(func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 9_991, 9 }),
			"the router lacks the capability Resolution: variation canary has 0.09 %, and the smallest share is 0.1 %; choose a larger share or 0",
		},
		"the smallest share":     {traffic.Capabilities{Resolution: 10}, half(func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 9_990, 10 }), ""},
		"no share":               {traffic.Capabilities{Resolution: 10}, half(func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 10_000, 0 }), ""},
		"the zero value divides": {traffic.Capabilities{}, half(func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 0, 10_000 }), ""},
		"the zero value divides no requests": {
			traffic.Capabilities{}, half(func(s *traffic.Split) { s.Shares[0].Weight, s.Shares[1].Weight = 9_999, 1 }),
			"the router lacks the capability Resolution: variation stable has 99.99 %, and the smallest share is 100 %; choose a larger share or 0; " +
				"the router lacks the capability Resolution: variation canary has 0.01 %, and the smallest share is 100 %; choose a larger share or 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.can.Check(tc.split); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestARouterWithoutCountsMeasuresNoCanary(t *testing.T) {
	can := traffic.FullCapabilities()
	if err := can.CheckMeasured(); err != nil {
		t.Errorf("a router that counts is refused: %v", err)
	}
	can.Outcomes = false
	incapable, is := errors.AsType[*traffic.IncapableError](can.CheckMeasured())
	if !is || len(incapable.Lacks) != 1 || incapable.Lacks[0].Capability != traffic.CapabilityOutcomes {
		t.Errorf("got %v, want a refusal that names %s", incapable, traffic.CapabilityOutcomes)
	}
}

var knowledge = []traffic.Knowledge{traffic.Contradicted, traffic.Unknown, traffic.NoProxies, traffic.Accepted, traffic.Proven} // the weakest first

func anyCapabilities(t *rapid.T) traffic.Capabilities {
	is := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return traffic.Capabilities{
		Sticky: is("sticky"), AnonymousVisitors: is("visitors"), HeaderMap: is("map"), Override: is("override"),
		Resolution: rapid.SampledFrom([]traffic.Weight{1, 10, 100, traffic.Total}).Draw(t, "resolution"), Knowledge: rapid.SampledFrom(knowledge).Draw(t, "knowledge"),
		Outcomes: is("outcomes"), InFlight: is("in flight"), RollbackWithoutAPIServer: is("rollback"),
	}
}

// missing are the capabilities that a router lacks for a split.
func missing(can traffic.Capabilities, split traffic.Split) map[traffic.Capability]bool {
	lacks := map[traffic.Capability]bool{}
	if incapable, is := errors.AsType[*traffic.IncapableError](can.Check(split)); is {
		for _, l := range incapable.Lacks {
			lacks[l.Capability] = true
		}
	}
	return lacks
}

func TestTwoRoutersTogetherLackWhatOneOfThemLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyCapabilities(t), anyCapabilities(t)
		weight := traffic.Weight(rapid.IntRange(0, 10_000).Draw(t, "weight"))
		split := half(func(s *traffic.Split) {
			s.Shares[0].Weight, s.Shares[1].Weight = traffic.Total-weight, weight
			s.Key.Kind = traffic.KeyKind(rapid.IntRange(0, 3).Draw(t, "key"))
			s.Override = rapid.SampledFrom([]string{"", "x-variation"}).Draw(t, "override")
			if rapid.Bool().Draw(t, "match") {
				s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
			}
		})
		want := missing(a, split)
		for capability := range missing(b, split) {
			want[capability] = true
		}
		if d := cmp.Diff(want, missing(a.Both(b), split)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if a.Both(b) != b.Both(a) || a.Both(a) != a || a.Both(traffic.FullCapabilities()) != a {
			t.Errorf("together with %+v, %+v has %+v", b, a, a.Both(b))
		}
	})
}

func TestTheWeakerKnowledgeCounts(t *testing.T) {
	for i, a := range knowledge {
		for j, b := range knowledge {
			if got := a.Weaker(b); got != knowledge[min(i, j)] {
				t.Errorf("of %s and %s the weaker is %s", a, b, got)
			}
		}
	}
	if got := traffic.Proven.Weaker("Hearsay"); got != "Hearsay" {
		t.Errorf("an unknown kind is stronger than Proven: %s", got)
	}
	if got := traffic.Knowledge("Hearsay").Weaker(traffic.NoProxies); got != "Hearsay" {
		t.Errorf("an unknown kind is stronger than NoProxies: %s", got)
	}
}

func TestASequenceIsEffectiveByWhatIsKnown(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		seen traffic.Observation
		want bool
	}{
		"proven":                      {traffic.Observation{Knowledge: traffic.Proven, Sequence: 7}, true},
		"a later one is proven":       {traffic.Observation{Knowledge: traffic.Proven, Sequence: 8}, true},
		"one before is proven":        {traffic.Observation{Knowledge: traffic.Proven, Sequence: 6}, false},
		"accepted, and counts later":  {traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7, SettledAt: at.Add(1)}, false},
		"accepted, and counts now":    {traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7, SettledAt: at}, true},
		"accepted, and counts always": {traffic.Observation{Knowledge: traffic.Accepted, Sequence: 7}, true},
		"one before is accepted":      {traffic.Observation{Knowledge: traffic.Accepted, Sequence: 6}, false},
		"unknown":                     {traffic.Observation{Knowledge: traffic.Unknown, Sequence: 7}, false},
		"without proxies":             {traffic.Observation{Knowledge: traffic.NoProxies, Sequence: 7}, false},
		"contradicted":                {traffic.Observation{Knowledge: traffic.Contradicted, Sequence: 7}, false},
		"a kind of a later version":   {traffic.Observation{Knowledge: "Hearsay", Sequence: 7}, false},
	} {
		if got := tc.seen.IsEffective(7, at); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
