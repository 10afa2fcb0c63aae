// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

func compareAddresses(a, b netip.AddrPort) bool { return a == b }

func TestPlace(t *testing.T) {
	a, b, c := portset.Addresses("10.0.0.1:80")[0], portset.Addresses("10.0.0.2:80")[0], portset.Addresses("10.0.0.3:80")[0]
	tests := map[string]struct {
		slots  []Slot
		wanted []netip.AddrPort
		busy   []int
		want   []Slot
	}{
		"the first endpoints have slots to spare": {nil, []netip.AddrPort{a}, nil, []Slot{{a, Serving}, {}, {}, {}}},
		"no endpoint has slots too":               {nil, nil, nil, []Slot{{}, {}, {}, {}}},
		"an endpoint stays where it is":           {[]Slot{{}, {a, Serving}}, []netip.AddrPort{b, a}, nil, []Slot{{b, Serving}, {a, Serving}}},
		"an endpoint that goes drains":            {[]Slot{{a, Serving}, {}}, nil, nil, []Slot{{a, Draining}, {}}},
		"a busy one goes on draining":             {[]Slot{{a, Draining}, {}}, nil, []int{0}, []Slot{{a, Draining}, {}}},
		"one that has answered all is empty":      {[]Slot{{a, Draining}, {}}, nil, nil, []Slot{{}, {}}},
		"one that comes back keeps its slot":      {[]Slot{{a, Draining}, {}}, []netip.AddrPort{a}, []int{0}, []Slot{{a, Serving}, {}}},
		"a slot that drained may be given away":   {[]Slot{{a, Draining}}, []netip.AddrPort{b}, nil, []Slot{{b, Serving}}},
		"a slot that drains is not given away":    {[]Slot{{a, Draining}}, []netip.AddrPort{b}, []int{0}, []Slot{{a, Draining}, {b, Serving}, {}, {}, {}}},
		"missing slots double": {
			[]Slot{{a, Serving}, {b, Serving}, {c, Serving}, {portset.Addresses("10.0.0.5:80")[0], Draining}, {portset.Addresses("10.0.0.6:80")[0], Draining}},
			portset.Addresses("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"),
			[]int{3, 4},
			[]Slot{
				{a, Serving}, {b, Serving}, {c, Serving}, {portset.Addresses("10.0.0.5:80")[0], Draining}, {portset.Addresses("10.0.0.6:80")[0], Draining},
				{portset.Addresses("10.0.0.4:80")[0], Serving}, {}, {}, {}, {},
			},
		},
		"an endpoint that is named twice is served": {nil, []netip.AddrPort{a, a}, nil, []Slot{{a, Serving}, {}, {}, {}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Place(tc.slots, tc.wanted, func(i int) bool { return slices.Contains(tc.busy, i) })
			if d := cmp.Diff(tc.want, got, cmp.Comparer(compareAddresses)); d != "" {
				t.Errorf("slots (-want +got):\n%s", d)
			}
		})
	}
}

// Whatever endpoints come and go: each wanted one serves once, no other one serves, a slot is given away
// only when it is not busy, and the commands bring the servers there.
func TestWhateverEndpointsComeAndGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slots []Slot
		servers := map[string]Slot{}
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			var wanted []netip.AddrPort
			for i := range 6 {
				if rapid.Bool().Draw(t, "wanted") {
					wanted = append(wanted, portset.Addresses(fmt.Sprintf("10.0.0.%d:80", i+1))...)
				}
			}
			busy := map[int]bool{}
			for i := range slots {
				busy[i] = rapid.Bool().Draw(t, "busy")
			}
			next := Place(slots, wanted, func(i int) bool { return busy[i] })
			serves(t, next, wanted)
			for i, s := range slots {
				if s.Address.IsValid() && busy[i] && s.State == Draining && next[i].Address != s.Address {
					t.Fatalf("busy slot %d has gone from %v to %v", i, s, next[i])
				}
				if s.State == Serving && (next[i].Address != s.Address || next[i].State == Empty) {
					t.Fatalf("slot %d went from %v to %v without draining", i, s, next[i])
				}
			}
			carryOut(t, servers, Commands("b", serverName, slots, next))
			for i := range slots {
				if got := servers[fmt.Sprint("b/", serverName(i))]; got != next[i] {
					t.Fatalf("server %d is %v, want %v", i, got, next[i])
				}
			}
			for i := len(slots); i < len(next); i++ { // a reload brings the rest
				servers[fmt.Sprint("b/", serverName(i))] = next[i]
			}
			slots = next
		}
	})
}

func serves(t *rapid.T, slots []Slot, wanted []netip.AddrPort) {
	for _, address := range wanted {
		n := 0
		for _, s := range slots {
			if s.State == Serving && s.Address == address {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d slots of %v serve %s", n, slots, address)
		}
	}
	for _, s := range slots {
		if s.State == Serving && !slices.Contains(wanted, s.Address) || (s.State == Empty) != !s.Address.IsValid() {
			t.Fatalf("slot %v with %v wanted", s, wanted)
		}
	}
}

// carryOut does what HAProxy does with commands.
func carryOut(t *rapid.T, servers map[string]Slot, commands []string) {
	for _, command := range commands {
		words := strings.Fields(command)
		s := servers[words[2]]
		switch {
		case words[3] == "addr":
			s.Address = netip.MustParseAddrPort(words[4] + ":" + words[6])
		case words[4] == "ready":
			s.State = Serving
		case words[4] == "drain":
			s.State = Draining
		case words[4] == "maint":
			s = Slot{}
		default:
			t.Fatalf("command %s", command)
		}
		servers[words[2]] = s
	}
}
