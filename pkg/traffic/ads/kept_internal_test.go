// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// There are two hundred names for each of ten thousand proxies.

func TestOfANameAtAProxyLittleIsKept(t *testing.T) {
	const want = 64 // and the next size that is allocated is 80
	if size := unsafe.Sizeof(held{}); size > want {
		t.Errorf("%d bytes are kept of each name, want at most %d", size, want)
	}
}

// proofs know of nothing.
type proofs struct{}

func (proofs) Proven(*Resource) bool { return false }
func (proofs) Prove(*Resource)       {}
func (proofs) Last(Key) *Resource    { return nil }

func TestTextsOfAProxyAreThoseOfTheViewAndNotItsOwn(t *testing.T) {
	route := &Resource{Type: Route, Name: "shop/web:80", Version: Version{Sequence: 3, Hash: "abc"}}
	nobody := func(Key) *Resource { return nil }
	name := func() string { return strings.Clone(route.Name) }
	for title, first := range map[string]Request{
		"of one that asks":                {Type: Route, Subscribe: []string{name()}},
		"of one that comes back":          {Type: Route, Subscribe: []string{name()}, Initial: map[string]string{name(): route.Version.String()}},
		"of one that says only it has it": {Type: Route, Subscribe: []string{all}, Initial: map[string]string{name(): route.Version.String()}},
	} {
		t.Run(title, func(t *testing.T) {
			view := NewView(route)
			s := NewStream(Config{}, proofs{}, nobody, view)
			now := time.Unix(1, 0)
			effects := s.Receive(now, first)
			own := &s.types[Route]
			for kept := range own.held {
				if unsafe.StringData(kept) != unsafe.StringData(route.Name) {
					t.Errorf("the name %q is kept once more", kept)
				}
			}
			for _, e := range effects {
				if sent, is := e.(Send); is {
					s.Receive(now, Request{Type: Route, Nonce: sent.Nonce})
				}
			}
			if own.held != nil || own.unsettled != nil || own.common.view != view || own.common.later != nil {
				t.Errorf("%v are kept, and %v are unsettled, want neither", own.held, own.unsettled)
			}
			if h, there := own.peek(route.Name); !there || h.told != &route.Version || h.has != route {
				t.Errorf("the proxy has %v, want %v", h.has, route)
			}
		})
	}
}

// Names come, wait and are settled, in whatever order.
func TestUnsettledNamesAreGoneThroughInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, want := &subscriptions{}, map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "name"))
			if rapid.Bool().Draw(t, "settled") {
				own.settle(name)
				delete(want, name)
			} else {
				own.unsettle(name)
				want[name] = true
			}
			if len(want) > 0 && rapid.Bool().Draw(t, "looked at") {
				if got, all := slices.Collect(own.sorted), slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
					t.Fatalf("gone through are %v, want %v", got, all)
				}
			}
		}
		if len(want) == 0 && own.order != nil {
			t.Error("an order is kept of no names")
		}
	})
}
