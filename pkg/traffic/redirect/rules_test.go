// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func TestTheRulesAreThoseOfTheGoldenFiles(t *testing.T) {
	for name, c := range map[string]Config{
		"ipv4":       {ProxyUID: 15700, CapturePort: 15001},
		"dual-stack": {ProxyUID: 15700, CapturePort: 15001, IPv6: true},
		"exclusions": {
			ProxyUID: 15700, CapturePort: 15001, IPv6: true,
			ExcludePorts: []uint16{5432, 6379}, ExcludeCIDRs: prefixes("10.0.0.0/8", "169.254.169.254/32", "fd00::/8"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Rules(c)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".nft"), rules.String())
		})
	}
}

func TestWhatMeansTheSameHasTheSameRules(t *testing.T) {
	one, err := Rules(Config{
		ProxyUID: 1, CapturePort: 2, ExcludePorts: []uint16{80, 443}, ExcludeCIDRs: prefixes("10.0.0.0/8", "192.168.0.0/16"),
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Rules(Config{
		ProxyUID: 1, CapturePort: 2, ExcludePorts: []uint16{443, 80, 443},
		ExcludeCIDRs: prefixes("192.168.7.9/16", "::ffff:10.1.2.3/104", "10.0.0.0/8"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one.String(), other.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARangeIsThatOfThePacketsItMeans(t *testing.T) {
	for name, tc := range map[string]struct{ cidr, want string }{
		"a range of IPv4":                    {"10.1.2.3/8", "ip daddr 10.0.0.0/8"},
		"one address of IPv4":                {"10.1.2.3/32", "ip daddr 10.1.2.3"},
		"a range of IPv6":                    {"fd00::1/8", "ip6 daddr fd00::/8"},
		"one address of IPv6":                {"fd00::1/128", "ip6 daddr fd00::1"},
		"a long range of IPv6":               {"fd00::1:2:3/100", "ip6 daddr fd00::1:0:0/100"},
		"IPv4 in the form of IPv6":           {"::ffff:10.1.2.3/104", "ip daddr 10.0.0.0/8"},
		"all of IPv4 in the form of IPv6":    {"::ffff:10.1.2.3/96", "ip daddr 0.0.0.0/0"},
		"more than IPv4 in the form of IPv6": {"::ffff:10.1.2.3/95", "ip6 daddr ::fffe:0:0/95"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Rules(Config{ProxyUID: 1, CapturePort: 2, IPv6: true, ExcludeCIDRs: prefixes(tc.cidr)})
			if err != nil {
				t.Fatal(err)
			}
			all := rules.Chains[0].Rules
			if diff := cmp.Diff(tc.want, all[len(all)-2].Match.String()); diff != "" {
				t.Errorf("the condition (-want +got):\n%s", diff)
			}
		})
	}
}

// A table that is read back may have more than our rules. Its text must not show that
// as ours.
func TestTheTextOfATableNamesForeignParts(t *testing.T) {
	for name, tc := range map[string]struct {
		table Ruleset
		want  string
	}{
		"an empty table":         {Ruleset{}, "table inet plumbline {\n}\n"},
		"a table with flags":     {Ruleset{Flagged: true}, "table inet plumbline {\n\t# of another owner: flags of the table\n}\n"},
		"a chain without a hook": {Ruleset{Chains: []Chain{{Name: "more"}}}, "table inet plumbline {\n\tchain more {\n\t}\n}\n"},
		"a foreign rule":         {Ruleset{Chains: []Chain{{Name: "output", Rules: []Rule{{Foreign: "counter"}}}}}, "table inet plumbline {\n\tchain output {\n\t\t# of another owner: counter\n\t}\n}\n"},
		"a rule without a field": {Ruleset{Chains: []Chain{{Name: "output", Rules: []Rule{{}}}}}, "table inet plumbline {\n\tchain output {\n\t\t# unknown field 0 accept\n\t}\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.table.String()); diff != "" {
				t.Errorf("the text (-want +got):\n%s", diff)
			}
		})
	}
}

// packet is the first of a connection, as the kernel shows it to the rules.
type packet struct {
	tcp, inside, opening bool
	user                 uint32
	to                   netip.AddrPort
}

// matches is what the kernel does with a condition.
func (p packet) matches(m Match) bool {
	return map[Field]bool{
		Inside: p.inside, ByUser: p.user == m.User, OverIPv6: p.to.Addr().Is6(),
		ToPort: p.tcp && p.to.Port() == m.Port, ToRange: m.Range.IsValid() && m.Range.Contains(p.to.Addr()), Opening: p.tcp && p.opening,
	}[m.Field]
}

func (p packet) redirectedBy(s Ruleset) bool {
	for _, r := range s.Chains[0].Rules {
		if p.matches(r.Match) {
			return r.RedirectTo != 0
		}
	}
	return false
}

// redirectedUnder is the promise, said without rules.
func (p packet) redirectedUnder(c Config) bool {
	excluded := slices.Contains(c.ExcludePorts, p.to.Port()) ||
		slices.ContainsFunc(c.ExcludeCIDRs, func(r netip.Prefix) bool { return r.Contains(p.to.Addr()) }) ||
		p.to.Addr().IsLinkLocalUnicast() && p.to.Addr().Is6()
	return p.tcp && p.opening && !p.inside && int64(p.user) != c.ProxyUID && !excluded && (c.IPv6 || p.to.Addr().Is4())
}

func anyConfig(t *rapid.T) Config {
	c := Config{
		ProxyUID: rapid.Int64Range(1, 3).Draw(t, "proxy"), CapturePort: 15001, IPv6: rapid.Bool().Draw(t, "ipv6"),
		ExcludePorts: rapid.SliceOfN(rapid.Uint16Range(1, 4), 0, 3).Draw(t, "ports"),
	}
	ranges := prefixes("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0")
	if c.IPv6 {
		ranges = append(ranges, prefixes("fd00::/8", "fd00::1/128", "::/0")...)
	}
	c.ExcludeCIDRs = rapid.SliceOfN(rapid.SampledFrom(ranges), 0, 2).Draw(t, "ranges")
	return c
}

func anyPacket(t *rapid.T) packet {
	addr := rapid.SampledFrom([]string{"10.1.2.3", "10.9.9.9", "192.0.2.1", "169.254.169.254", "fd00::1", "2001:db8::1", "fe80::1"}).Draw(t, "to")
	return packet{
		tcp: rapid.IntRange(0, 9).Draw(t, "tcp") > 0, inside: rapid.IntRange(0, 9).Draw(t, "inside") == 0,
		opening: rapid.IntRange(0, 9).Draw(t, "opening") > 0, user: rapid.Uint32Range(0, 4).Draw(t, "user"),
		to: netip.AddrPortFrom(netip.MustParseAddr(addr), rapid.Uint16Range(1, 8).Draw(t, "port")),
	}
}

func TestExactlyWhatIsPromisedIsRedirected(t *testing.T) {
	seen := map[bool]bool{}
	rapid.Check(t, func(t *rapid.T) {
		c, p := anyConfig(t), anyPacket(t)
		rules, err := Rules(c)
		if err != nil {
			t.Fatal(err)
		}
		want := p.redirectedUnder(c)
		seen[want] = true
		if got := p.redirectedBy(rules); got != want {
			t.Fatalf("%+v redirected: %t, want %t, under\n%s", p, got, want, rules)
		}
	})
	if !seen[true] || !seen[false] {
		t.Errorf("only one answer was seen: %v", seen)
	}
}
