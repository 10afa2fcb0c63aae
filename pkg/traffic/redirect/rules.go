// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Table is the name of the table with all our rules, of both families (inet).
const Table = "plumbline"

// Ruleset is what a table has. As text it is what nft(8) reads and lists.
type Ruleset struct {
	Chains []Chain
	// Flagged: the table has flags, as no table of ours; one of them puts it to sleep.
	Flagged bool
}

// Chain is a list of rules, of which the first that matches decides.
type Chain struct {
	Name  string
	Hook  Hook
	Rules []Rule
}

// Hook is where in the kernel a chain is asked, as nft says it.
type Hook string

// OutputNAT is asked about each new connection that begins in the pod, when its
// route is known.
const OutputNAT Hook = "type nat hook output priority -100; policy accept;"

// Rule leaves what matches as it is, or redirects it.
type Rule struct {
	Match Match
	// RedirectTo is a port on loopback, or 0.
	RedirectTo uint16
	// Foreign tells of a rule that is none of ours; it has nothing else.
	Foreign string
}

// Match is one condition. User, Port and Range belong to the Field of that name.
type Match struct {
	Field Field
	User  uint32
	Port  uint16
	Range netip.Prefix
}

// Field is what a match looks at.
type Field int

const (
	// Inside is what leaves over the loopback interface: the kernel sends there all
	// that goes to an address of the pod's own.
	Inside Field = iota + 1
	// ByUser is what a process of User sends.
	ByUser
	// OverIPv6 is all IPv6.
	OverIPv6
	// ToPort is a destination of TCP.
	ToPort
	// ToRange is a destination.
	ToRange
	// Opening is a packet that opens a TCP connection. Of a connection that was open
	// before the rules, the kernel may take any packet for its first; that one must
	// not be redirected.
	Opening
)

// linkLocal addresses mean nothing without an interface, which the proxy is not told.
var linkLocal = netip.MustParsePrefix("fe80::/10")

// Rules are those of a Config, the same for all that mean the same. The error is that
// of Validate.
func Rules(c Config) (Ruleset, error) {
	if err := c.Validate(); err != nil {
		return Ruleset{}, fmt.Errorf("making the rules: %w", err)
	}
	untouched := []Match{{Field: Inside}, {Field: ByUser, User: uint32(c.ProxyUID)}}
	if c.IPv6 {
		untouched = append(untouched, Match{Field: ToRange, Range: linkLocal})
	} else {
		untouched = append(untouched, Match{Field: OverIPv6})
	}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(c.ExcludePorts))) {
		untouched = append(untouched, Match{Field: ToPort, Port: p})
	}
	for _, p := range c.ranges() {
		untouched = append(untouched, Match{Field: ToRange, Range: p})
	}
	var rules []Rule
	for _, m := range untouched {
		rules = append(rules, Rule{Match: m})
	}
	rules = append(rules, Rule{Match: Match{Field: Opening}, RedirectTo: c.CapturePort})
	return Ruleset{Chains: []Chain{{Name: "output", Hook: OutputNAT, Rules: rules}}}, nil
}

func (c Config) ranges() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range c.ExcludeCIDRs {
		out = append(out, canonical(p))
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

func (s Ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", Table)
	if s.Flagged {
		b.WriteString("\t# of another owner: flags of the table\n")
	}
	for _, c := range s.Chains {
		fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
		if c.Hook != "" {
			fmt.Fprintf(&b, "\t\t%s\n", c.Hook)
		}
		for _, r := range c.Rules {
			fmt.Fprintf(&b, "\t\t%s\n", r)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func (r Rule) String() string {
	switch {
	case r.Foreign != "":
		return "# of another owner: " + r.Foreign
	case r.RedirectTo != 0:
		return fmt.Sprintf("%s redirect to :%d", r.Match, r.RedirectTo)
	}
	return r.Match.String() + " accept"
}

func (m Match) String() string {
	switch m.Field {
	case Inside:
		return `oifname "lo"`
	case ByUser:
		return fmt.Sprintf("meta skuid %d", m.User)
	case OverIPv6:
		return "meta nfproto ipv6"
	case ToPort:
		return fmt.Sprintf("tcp dport %d", m.Port)
	case ToRange:
		return rangeText(m.Range)
	case Opening:
		return "tcp flags syn / fin,syn,rst,ack"
	}
	return fmt.Sprintf("# unknown field %d", int(m.Field))
}

func rangeText(p netip.Prefix) string {
	family, text := "ip", p.String()
	if p.Addr().Is6() {
		family = "ip6"
	}
	if p.IsSingleIP() {
		text = p.Addr().String()
	}
	return family + " daddr " + text
}
