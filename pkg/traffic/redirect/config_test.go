// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"flag"
	"io"
	"math"
	"net/netip"
	"strings"
	"testing"
)

func read(args ...string) (Config, error) {
	var c Config
	fs := flag.NewFlagSet("redirect", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	c.AddFlags(fs)
	return c, fs.Parse(args)
}

// rulesOf is the way of the arguments to the rules, all of it.
func rulesOf(args ...string) (Ruleset, error) {
	c, err := read(args...)
	if err != nil {
		return Ruleset{}, err
	}
	return Rules(c)
}

func many(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

func TestAWrongArgumentIsNamedWithWhatToGiveInstead(t *testing.T) {
	right := []string{"--proxy-uid=15700", "--capture-port=15001"}
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"root as the proxy's user":      {[]string{"--proxy-uid=0"}, []string{"--proxy-uid: 0", "not root"}},
		"a user below all":              {[]string{"--proxy-uid=-1"}, []string{"--proxy-uid: -1", "1 to 2147483647"}},
		"a user above all":              {[]string{"--proxy-uid=2147483648"}, []string{"--proxy-uid: 2147483648"}},
		"a user by name":                {[]string{"--proxy-uid=envoy"}, []string{"proxy-uid", "envoy"}},
		"the capture port 0":            {[]string{"--capture-port=0"}, []string{"capture-port", "from 1 to 65535"}},
		"a capture port over all":       {[]string{"--capture-port=65536"}, []string{"capture-port", "65536"}},
		"an excluded port over all":     {[]string{"--exclude-ports=80,70000"}, []string{"exclude-ports", `"70000"`, "from 1 to 65535"}},
		"an excluded port 0":            {[]string{"--exclude-ports=0"}, []string{"exclude-ports", `"0"`}},
		"an empty place in a list":      {[]string{"--exclude-ports=80,"}, []string{"exclude-ports", `""`}},
		"a space in a list":             {[]string{"--exclude-ports=80, 443"}, []string{"exclude-ports", `" 443"`}},
		"the capture port is excluded":  {[]string{"--exclude-ports=80,15001"}, []string{"--exclude-ports: 15001", "take it out"}},
		"more ports than there may be":  {[]string{"--exclude-ports=" + many("80", 65)}, []string{"--exclude-ports: 65"}},
		"an address that is no range":   {[]string{"--exclude-cidrs=10.0.0.1"}, []string{"exclude-cidrs", `"10.0.0.1"`, "10.0.0.0/8"}},
		"a range over all":              {[]string{"--exclude-cidrs=10.0.0.0/33"}, []string{"exclude-cidrs", "10.0.0.0/33"}},
		"a range with an interface":     {[]string{"--ipv6", "--exclude-cidrs=fe80::%eth0/64"}, []string{"exclude-cidrs", "fe80::%eth0/64"}},
		"more ranges than there may be": {[]string{"--exclude-cidrs=" + many("10.0.0.0/8", 65)}, []string{"--exclude-cidrs: 65"}},
		"a range of IPv6 without IPv6":  {[]string{"--exclude-cidrs=10.0.0.0/8,fd00::/8"}, []string{"--exclude-cidrs: fd00::/8", "set --ipv6"}},
		"IPv6 neither on nor off":       {[]string{"--ipv6=perhaps"}, []string{"ipv6", "perhaps"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rulesOf(append(right, tc.args...)...)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error %v has not %q", err, want)
				}
			}
		})
	}
}

func TestAllThatIsMissingIsNamedAtOnce(t *testing.T) {
	_, err := rulesOf()
	for _, want := range []string{"--proxy-uid", "--capture-port"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v has not %s", err, want)
		}
	}
}

func TestTheBoundsThemselvesAreAllowed(t *testing.T) {
	for name, args := range map[string][]string{
		"the least":           {"--proxy-uid=1", "--capture-port=1", "--exclude-ports=2", "--exclude-cidrs=0.0.0.0/0"},
		"the most":            {"--proxy-uid=2147483647", "--capture-port=65535", "--exclude-ports=65534", "--ipv6", "--exclude-cidrs=::/0,ffff::/128"},
		"as many as can be":   {"--proxy-uid=1", "--capture-port=1", "--exclude-ports=" + many("2", 64), "--exclude-cidrs=" + many("10.0.0.0/8", 64)},
		"empty lists":         {"--proxy-uid=1", "--capture-port=1", "--exclude-ports=", "--exclude-cidrs="},
		"IPv4 in IPv6's form": {"--proxy-uid=1", "--capture-port=1", "--ipv6=false", "--exclude-cidrs=::ffff:10.0.0.0/104"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rulesOf(args...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A Config need not come from flags.
func TestAConfigMadeByHandIsCheckedToo(t *testing.T) {
	for name, c := range map[string]Config{
		"a port that is none":        {ProxyUID: 1, CapturePort: 1, ExcludePorts: []uint16{0}},
		"a range that is none":       {ProxyUID: 1, CapturePort: 1, ExcludeCIDRs: make([]netip.Prefix, 1)},
		"a user that does not exist": {ProxyUID: math.MaxInt64, CapturePort: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Rules(c); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
