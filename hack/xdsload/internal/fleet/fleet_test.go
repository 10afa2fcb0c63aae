// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
)

func TestOneOfSoManyIsChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.IntRange(0, 50).Draw(t, "every")
		chosen := 0
		for i := range 500 {
			if Chosen(i, every) {
				chosen++
			}
		}
		if every == 0 && chosen != 0 || every > 0 && chosen != 500/every {
			t.Fatalf("%d of 500 are chosen when it is one of %d", chosen, every)
		}
	})
}

// The bootstrap has Envoys come back within two seconds; here they waited for up to half a minute.
func TestTheBackoffIsThatOfTheBootstrap(t *testing.T) {
	for attempt, most := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 6: 2 * time.Second, 60: 2 * time.Second} {
		var longest time.Duration
		for range 500 {
			longest = max(longest, backoff(attempt))
		}
		if longest > most || longest < most*9/10 {
			t.Errorf("of 500 after %d attempts the longest is %v, want nearly %v", attempt, longest, most)
		}
	}
}

func TestAAcknowledgmentIsThatOfTheVersion(t *testing.T) {
	f := &Fleet{}
	response := func(name, version string) *wire.Response {
		return &wire.Response{Resources: []wire.Resource{{Name: "other", Version: "8.x"}, {Name: name, Version: version}}}
	}
	f.watched.Load().note(1, response("web", "8.a")) // while none is waited for
	c := f.Watch("web", "8.", 2)
	for _, r := range []*wire.Response{response("web", "7.a"), response("pay", "8.a"), response("web", "8.a"), response("web", "8.a")} {
		c.note(1, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if took := c.Await(ctx); len(took) != 1 {
		t.Fatalf("%d have acknowledged, want 1", len(took))
	}
	c.note(2, response("web", "8.a"))
	if took := c.Await(t.Context()); len(took) != 2 || f.watched.Load() != nil {
		t.Errorf("%d have acknowledged, want 2, and none is waited for", len(took))
	}
}
