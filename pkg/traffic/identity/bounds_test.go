// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// tally verifies tokens one after the other and counts how it ended.
func tally(t *testing.T, v *identity.Verifier, tokens ...string) map[identity.Reason]int {
	t.Helper()
	counts := map[identity.Reason]int{}
	for _, token := range tokens {
		_, err := v.Verify(t.Context(), token)
		counts[identity.ReasonOf(err)]++
	}
	return counts
}

func invented(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("invented-%d", i)
	}
	return tokens
}

// The proxies of new pods come in while somebody floods the server with tokens of
// which only the API server can say that they are bad.
func TestAFloodOfInventedTokensTakesNothingFromNewPods(t *testing.T) {
	c := newCluster()
	v := c.verifier(identity.Limits{PerSecond: 10, Burst: 5})
	want := map[identity.Reason]int{identity.ReasonRefused: 5, identity.ReasonBusy: 95}
	if diff := cmp.Diff(want, tally(t, v, invented(100)...)); diff != "" {
		t.Errorf("invented tokens (-want +got):\n%s", diff)
	}
	c.run(web, false)
	if _, err := v.Verify(t.Context(), c.mint(web, "k1")); err != nil {
		t.Errorf("a new pod: %v", err)
	}
	c.wait(100 * time.Millisecond)
	if diff := cmp.Diff(map[identity.Reason]int{identity.ReasonRefused: 1, identity.ReasonBusy: 9}, tally(t, v, invented(110)[100:]...)); diff != "" {
		t.Errorf("a tenth of a second later (-want +got):\n%s", diff)
	}
}

func TestAnAnswerIsRememberedForFiveSeconds(t *testing.T) {
	for name, known := range map[string]bool{"a good one": true, "a bad one": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			v := c.verifier(identity.Limits{})
			token := c.mint(web, "k1")
			if known {
				c.run(web, false)
			}
			for _, step := range []struct {
				after time.Duration
				want  int
			}{{0, 1}, {4 * time.Second, 1}, {time.Second, 2}} {
				c.wait(step.after)
				tally(t, v, token)
				if c.reviews != step.want {
					t.Errorf("%s later the API server has been asked %d times, want %d", step.after, c.reviews, step.want)
				}
			}
		})
	}
}

func TestNoAnswerIsNotRemembered(t *testing.T) {
	c := newCluster()
	v := c.verifier(identity.Limits{})
	c.run(web, false)
	token := c.mint(web, "k1")
	c.up = false
	tally(t, v, token)
	c.up = true
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// Both streams of a proxy, and all tries of an impatient one, are one review; and
// no more reviews are under way than there are places.
func TestReviewsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.hold = make(chan struct{})
		v := c.verifier(identity.Limits{Concurrent: 2})
		c.run(web, false)
		good := c.mint(web, "k1")
		var mu sync.Mutex
		counts := map[identity.Reason]int{}
		verify := func(token string) {
			_, err := v.Verify(t.Context(), token)
			mu.Lock()
			defer mu.Unlock()
			counts[identity.ReasonOf(err)]++
		}
		for range 50 {
			go verify(good)
		}
		for _, token := range invented(10) {
			go verify(token)
		}
		synctest.Wait()
		if diff := cmp.Diff(map[identity.Reason]int{identity.ReasonBusy: 8}, counts); diff != "" {
			t.Errorf("while the API server thinks (-want +got):\n%s", diff)
		}
		close(c.hold)
		synctest.Wait()
		want := map[identity.Reason]int{"": 50, identity.ReasonBusy: 8, identity.ReasonRefused: 2}
		if diff := cmp.Diff(want, counts); diff != "" || c.reviews != 3 {
			t.Errorf("afterwards, with %d reviews (-want +got):\n%s", c.reviews, diff)
		}
	})
}

func TestWhoHasGoneAwayIsNotAskedAbout(t *testing.T) {
	c := newCluster()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.verifier(identity.Limits{}).Verify(ctx, "opaque"); identity.ReasonOf(err) != identity.ReasonUnavailable || c.reviews != 0 {
		t.Errorf("%v, and %d reviews", err, c.reviews)
	}
}

func TestKeysAreReadAgain(t *testing.T) {
	c := newCluster()
	v := c.verifier(identity.Limits{})
	c.run(web, true)
	if err := v.ReadKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads := func(when string, want int) {
		t.Helper()
		if got := len(c.reads); got != want {
			t.Errorf("%s: the keys were read %d times, want %d", when, got, want)
		}
	}
	old := c.mint(web, "k1")
	for i := range 100 {
		tally(t, v, signed(newKey(), fmt.Sprint("invented-", i), c.claims(web)))
	}
	reads("with unknown keys at once", 1)
	c.wait(someWait)
	c.change(func() { c.keys["k2"] = newKey() })
	if got, err := v.Verify(t.Context(), c.mint(web, "k2")); err != nil || got.Reviewed {
		t.Errorf("with a new key: reviewed %t, %v", got.Reviewed, err)
	}
	reads("with a new key", 2)
	if got, err := v.Verify(t.Context(), old); err != nil || got.Reviewed {
		t.Errorf("with the old key: reviewed %t, %v", got.Reviewed, err)
	}

	c.change(func() { c.up = false })
	c.wait(life - 2*someWait)
	for range 3 {
		if _, err := v.Verify(t.Context(), old); err != nil {
			t.Errorf("while the API server is away: %v", err)
		}
	}
	poll.True(t, time.Minute, "somebody is told that the keys cannot be read", func() bool { return v.ReadKeys(t.Context()) != nil })
	c.change(func() { c.up = true; delete(c.keys, "k1") })
	c.wait(someWait)
	poll.True(t, time.Minute, "the key that was taken back is not believed any more", func() bool {
		_, err := v.Verify(t.Context(), old)
		return identity.ReasonOf(err) == identity.ReasonRefused
	})
}

// A million tokens that nobody has ever made, of each kind that somebody can make:
// whatever is kept of them, it is as much after the million as after the first
// hundred thousand.
func TestMemoryStaysFlatUnderManyTokens(t *testing.T) {
	all, slack := 200_000, uint64(1<<20)
	if os.Getenv("PLUMBLINE_LONG") != "" {
		all = 1_000_000
	}
	some := all / 10
	c := newCluster()
	c.run(web, true)
	v := c.verifier(identity.Limits{})
	good := strings.Split(c.mint(web, "k1"), ".")
	unknown := strings.Split(signed(newKey(), "k2", c.claims(web)), ".")
	counts := map[identity.Reason]int{}
	var before uint64
	for i := range all {
		c.wait(500 * time.Microsecond)
		token := fmt.Sprintf("invented-%d-%s", i, good[2])
		switch i % 200 {
		case 0: // a signature that is none
			token = fmt.Sprintf("%s.%s.%s", good[0], good[1], good[2][:60]+fmt.Sprintf("%026d", i))
		case 1, 2, 3: // a key that nobody knows
			token = fmt.Sprintf("%s.%s.%s", unknown[0], unknown[1], good[2][:60]+fmt.Sprintf("%026d", i))
		}
		_, err := v.Verify(t.Context(), token)
		counts[identity.ReasonOf(err)]++
		if i == some {
			before = heap()
		}
	}
	after := heap()
	t.Logf("heap %d KiB after %d, %d KiB after %d: %v", before>>10, some, after>>10, all, counts)
	if after > before+slack {
		t.Errorf("the heap has grown by %d KiB", (after-before)>>10)
	}
	if counts[""] > 0 || counts[identity.ReasonRefused] == 0 || counts[identity.ReasonBusy] == 0 || counts[identity.ReasonSignature] != all/200 {
		t.Errorf("not all kinds were met: %v", counts)
	}
	runtime.KeepAlive(v)
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one set free is gone after the second
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
