// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// history is a cluster in which pods come and go, keys change and the API server
// goes away, and what was true of it before.
type history struct {
	*cluster
	v    *identity.Verifier
	made int
	gone map[pod]time.Time // when it went
}

// memory is how long an answer may be remembered.
const memory = 5 * time.Second

func (h *history) start(name string, cached bool) {
	h.made++
	if old, ok := h.truth["shop/"+name]; ok {
		h.gone[old] = h.now
	}
	h.run(pod{"shop", name, fmt.Sprint("uid-", h.made), "front"}, cached)
}

func (h *history) stop(name string) {
	if old, ok := h.truth["shop/"+name]; ok {
		h.gone[old] = h.now
		delete(h.truth, old.key())
	}
}

// check compares a verdict about a token with what it should be. The lanes of this
// test are wide, so nothing is ever busy.
func (h *history) check(t *rapid.T, token string) {
	m := h.minted[token]
	cached, running := h.cache[m.pod.key()] == m.pod, h.truth[m.pod.key()] == m.pod
	went, hasGone := h.gone[m.pod]
	fresh := h.now.Sub(m.until) <= 0
	got, err := h.v.Verify(t.Context(), token)
	why := identity.ReasonOf(err)
	_ = h.v.ReadKeys(t.Context()) // a read in the background ends before the clock goes on
	if err == nil && (got.PodUID != m.pod.uid || got.Pod != m.pod.name || h.now.Sub(m.until) > 10*time.Second) {
		t.Fatalf("let in as %+v with a token of %+v", got, m)
	}
	if err == nil && !running && !cached && hasGone && h.now.Sub(went) >= memory {
		t.Fatalf("let in a pod that went %s ago", h.now.Sub(went))
	}
	if good := fresh && running && h.keys[m.key] != nil; good && err != nil && why != identity.ReasonUnavailable {
		t.Fatalf("a good token was refused: %v", err)
	} else if good && err != nil && h.up {
		t.Fatalf("the API server is there: %v", err)
	}
	if fresh && cached && h.answered(m.key) && h.keys[m.key] != nil && err != nil {
		t.Fatalf("a known pod with a known key was refused: %v", err)
	}
}

// answered says that a key is in the last answer about keys.
func (h *history) answered(key string) (in bool) {
	h.change(func() { in = h.read[key] })
	return in
}

// Nobody is let in whose pod is gone for longer than an answer is remembered, and
// nobody is refused for good whose pod is there, whatever the cache has missed.
func TestVerdictsOverTheHistoryOfACluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{cluster: newCluster(), gone: map[pod]time.Time{}}
		h.v = h.verifier(identity.Limits{PerSecond: 1e9, Burst: 1e9})
		name := rapid.SampledFrom([]string{"a", "b"})
		t.Repeat(map[string]func(*rapid.T){
			"a pod starts":     func(t *rapid.T) { h.start(name.Draw(t, "pod"), rapid.Bool().Draw(t, "cached")) },
			"a pod goes":       func(t *rapid.T) { h.stop(name.Draw(t, "pod")) },
			"the cache is new": func(*rapid.T) { h.cache = maps.Clone(h.truth) },
			"time passes": func(t *rapid.T) {
				h.wait(rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Second, 11 * time.Second, 6 * time.Minute}).Draw(t, "time"))
			},
			"the API server": func(t *rapid.T) {
				up := rapid.Bool().Draw(t, "is there")
				h.change(func() { h.up = up })
			},
			"its keys": func(t *rapid.T) {
				noKeys := rapid.Bool().Draw(t, "are kept back")
				h.change(func() { h.noKeys = noKeys })
			},
			"a new key": func(*rapid.T) {
				h.change(func() { h.keys[fmt.Sprint("k", len(h.keys)+1)] = newKey() })
			},
			"a token": func(t *rapid.T) {
				if len(h.truth) == 0 {
					t.Skip("there is no pod")
				}
				p := h.truth[rapid.SampledFrom(slices.Sorted(maps.Keys(h.truth))).Draw(t, "of")]
				h.check(t, h.mint(p, rapid.SampledFrom(slices.Sorted(maps.Keys(h.keys))).Draw(t, "with")))
			},
			"a token again": func(t *rapid.T) {
				if len(h.minted) == 0 {
					t.Skip("there is no token")
				}
				h.check(t, rapid.SampledFrom(slices.Sorted(maps.Keys(h.minted))).Draw(t, "token"))
			},
			"": func(t *rapid.T) {
				h.change(func() {
					for i := 1; i < len(h.reads); i++ {
						if pause := h.reads[i].Sub(h.reads[i-1]); pause < someWait {
							t.Fatalf("the keys were read again after %s", pause)
						}
					}
				})
			},
		})
	})
}
