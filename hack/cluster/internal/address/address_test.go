// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestAllocate(t *testing.T) {
	cases := map[string]struct {
		routed []netip.Prefix
		want   int
		err    error
	}{
		"a machine with nothing but a default route gives the first block": {prefixes("0.0.0.0/0", "192.168.1.0/24"), 0, nil},
		"the block of a running cluster is skipped":                        {prefixes("10.192.0.0/16", "10.192.255.0/30"), 1, nil},
		"a gap is filled": {prefixes("10.192.0.0/16", "10.194.0.0/16"), 1, nil},
		"one foreign address inside a block takes it":            {prefixes("10.192.7.7/32"), 1, nil},
		"a foreign network around several blocks takes them all": {prefixes("10.192.0.0/12"), 16, nil},
		"a network around everything leaves nothing":             {prefixes("10.0.0.0/8"), 0, ErrExhausted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Allocate(tc.routed)
			if !errors.Is(err, tc.err) || got.Index != tc.want {
				t.Errorf("Allocate(%v) = %v, %v; want index %d, error %v", tc.routed, got, err, tc.want, tc.err)
			}
		})
	}
}

// TestAllocateAgainstNaiveTwin compares with a search that enumerates addresses.
func TestAllocateAgainstNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix {
			octets := [4]byte{10, rapid.Byte().Draw(t, "second"), rapid.Byte().Draw(t, "third"), rapid.Byte().Draw(t, "fourth")}
			return netip.PrefixFrom(netip.AddrFrom4(octets), rapid.IntRange(10, 32).Draw(t, "bits")).Masked()
		}), 0, 60).Draw(t, "routed")
		want := -1
	search:
		for index := range Blocks {
			for _, destination := range drawn {
				first := netip.AddrFrom4([4]byte{10, byte(192 + index), 0, 0})
				inside := destination.Addr().As4()
				if destination.Contains(first) || (inside[0] == 10 && int(inside[1]) == 192+index) {
					continue search
				}
			}
			want = index
			break
		}
		got, err := Allocate(drawn)
		if err != nil {
			got.Index = -1
		}
		if got.Index != want {
			t.Fatalf("Allocate(%v) = %d (%v), naive search says %d", drawn, got.Index, err, want)
		}
	})
}

// TestNetworksAreDisjoint holds the promise that clusters share no address, and
// that within one the ranges do not overlap.
func TestNetworksAreDisjoint(t *testing.T) {
	for i := range Blocks {
		n := Network{Index: i}
		ranges := []netip.Prefix{n.Pods(), n.Services(), n.Host().Masked()}
		for a := range ranges {
			if !n.Block().Contains(ranges[a].Addr()) || ranges[a].Bits() < n.Block().Bits() {
				t.Errorf("index %d: %s is not inside %s", i, ranges[a], n.Block())
			}
			for b := range a {
				if ranges[a].Overlaps(ranges[b]) {
					t.Errorf("index %d: %s overlaps %s", i, ranges[a], ranges[b])
				}
			}
		}
		for j := range i {
			if n.Block().Overlaps(Network{Index: j}.Block()) {
				t.Errorf("blocks %d and %d overlap", i, j)
			}
		}
		if len(n.Link()) > 15 {
			t.Errorf("link name %q is longer than the kernel allows", n.Link())
		}
	}
}

func TestAddressesOfOneNetwork(t *testing.T) {
	n := Network{Index: 3}
	got := []string{
		n.Block().String(), n.Pods().String(), n.NodePods().String(), n.Services().String(),
		n.API().String(), n.DNS().String(), n.Host().String(), n.Node().String(), n.Link(),
	}
	want := []string{
		"10.195.0.0/16", "10.195.0.0/17", "10.195.0.0/24", "10.195.128.0/18",
		"10.195.128.1", "10.195.128.10", "10.195.255.1/30", "10.195.255.2/30", "plumbline3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("network 3 (-want +got):\n%s", diff)
	}
	if !n.Services().Contains(n.API()) || !n.Services().Contains(n.DNS()) {
		t.Error("the API's or the DNS's address is not a ClusterIP")
	}
}
