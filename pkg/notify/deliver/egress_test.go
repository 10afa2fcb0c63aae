// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestEgress_Permits(t *testing.T) {
	cases := map[string]struct {
		addr                string
		public, whenAllowed bool // by default, and with everything allowed
	}{
		"a public address":                      {"93.184.216.34", true, true},
		"a public address of IPv6":              {"2606:2800:220:1::1", true, true},
		"loopback":                              {"127.0.0.1", false, true},
		"loopback of IPv6":                      {"::1", false, true},
		"loopback, written as IPv6":             {"::ffff:127.0.0.1", false, true},
		"a private network":                     {"10.96.0.1", false, true},
		"another private network":               {"172.31.255.255", false, true},
		"the address after it":                  {"172.32.0.0", true, true},
		"a third private network":               {"192.168.1.1", false, true},
		"a private network of IPv6":             {"fd12::1", false, true},
		"shared by a carrier":                   {"100.64.0.1", false, true},
		"for documentation":                     {"2001:db8::1", false, true},
		"6to4, which may carry a private one":   {"2002:0a00:0001::1", false, true},
		"a tunnel of Teredo":                    {"2001:0:1::1", false, true},
		"NAT64 of a public address":             {"64:ff9b::5db8:d822", true, true},
		"NAT64 of a private address":            {"64:ff9b::10.0.0.1", false, true},
		"NAT64 of the metadata service":         {"64:ff9b::169.254.169.254", false, false},
		"NAT64 of a local prefix":               {"64:ff9b:1::1", false, true},
		"reserved":                              {"240.0.0.1", false, true},
		"broadcast":                             {"255.255.255.255", false, true},
		"the metadata service":                  {"169.254.169.254", false, false},
		"the metadata service, written as IPv6": {"::ffff:169.254.169.254", false, false},
		"Amazon's metadata service on IPv6":     {"fd00:ec2::254", false, false},
		"Alibaba's metadata service":            {"100.100.100.200", false, false},
		"Oracle's metadata service":             {"192.0.0.192", false, false},
		"link-local of IPv6":                    {"fe80::1", false, false},
		"link-local with a zone":                {"fe80::1%eth0", false, false},
		"loopback with a zone":                  {"::1%lo", false, true},
		"multicast":                             {"224.0.0.1", false, false},
		"multicast of IPv6":                     {"ff02::1", false, false},
		"unspecified":                           {"0.0.0.0", false, false},
		"unspecified of IPv6":                   {"::", false, false},
	}
	everything := Egress{Allowed: prefixes("0.0.0.0/0", "::/0")}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			addr := netip.MustParseAddr(tc.addr)
			if got := (Egress{}).permits(addr); got != tc.public {
				t.Errorf("by default: %t", got)
			}
			if got := everything.permits(addr); got != tc.whenAllowed {
				t.Errorf("with everything allowed: %t", got)
			}
		})
	}
	if (Egress{}).permits(netip.Addr{}) || everything.permits(netip.Addr{}) {
		t.Error("no address at all is permitted")
	}
}

// TestEgress_AllowingNeverForbids, and forbids nothing else: an allowed network
// opens its own addresses alone.
func TestEgress_AllowingNeverForbids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		addr := netip.AddrFrom4([4]byte(bytes))
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "network"))), rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
		plain, allowed := Egress{}.permits(addr), Egress{Allowed: []netip.Prefix{network}}.permits(addr)
		if plain && !allowed || !network.Contains(addr) && plain != allowed {
			t.Fatalf("%s: %t by default, %t with %s", addr, plain, allowed, network)
		}
	})
}

func TestEgress_ControlRefusesWhatItCannotRead(t *testing.T) {
	for address, want := range map[string]error{"10.0.0.1:25": errAddressRefused, "93.184.216.34:443": nil} {
		if err := (Egress{}).control("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := (Egress{}).control("tcp", "mail.example.com:25", nil); err == nil {
		t.Error("a name is permitted")
	}
}
