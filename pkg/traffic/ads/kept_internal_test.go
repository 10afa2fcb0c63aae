// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"strings"
	"testing"
	"time"
	"unsafe"
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
