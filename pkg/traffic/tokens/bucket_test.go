// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
)

// In no time more is spent than the burst and what came back meanwhile.
func TestInNoTimeMoreIsSpentThanTheBurstAndWhatComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := tokens.Rate{PerSecond: 10, Burst: 50}
		begin := time.Unix(1_000_000, 0)
		now, spent := begin, 0.0
		b := tokens.NewBucket(r, now)
		for range rapid.IntRange(1, 200).Draw(t, "messages") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "later")) * time.Millisecond)
			cost := tokens.Of(rapid.IntRange(0, 100_000).Draw(t, "bytes"))
			if b.Spend(r, cost, now) {
				spent += cost
			}
			if most := r.Burst + r.PerSecond*now.Sub(begin).Seconds(); spent > most+1e-6 {
				t.Fatalf("%f tokens were spent in %s, want at most %f", spent, now.Sub(begin), most)
			}
		}
		if !b.Full(r, now.Add(time.Hour)) {
			t.Fatal("it is not full after an hour")
		}
	})
}

func TestADebtIsPaidBeforeTheNextMessage(t *testing.T) {
	r := tokens.Rate{PerSecond: 1, Burst: 2}
	now := time.Unix(0, 0)
	b := tokens.NewBucket(r, now)
	for _, step := range []struct {
		after  time.Duration
		tokens float64
		enough bool
	}{{0, 2, true}, {0, 3, false}, {3 * time.Second, 1, false}, {2 * time.Second, 1, true}} {
		now = now.Add(step.after)
		if got := b.Spend(r, step.tokens, now); got != step.enough {
			t.Errorf("at %s %v tokens are enough: %v", now.UTC(), step.tokens, got)
		}
	}
}

func TestAMessageCostsOneTokenAndOneForEach4KiB(t *testing.T) {
	for bytes, want := range map[int]float64{0: 1, 4095: 1, 4096: 2, 8191: 2, 8192: 3, 1 << 20: 257} {
		if got := tokens.Of(bytes); got != want {
			t.Errorf("%d bytes cost %v tokens, want %v", bytes, got, want)
		}
	}
}

func TestABucketEarnsUpToItsBurst(t *testing.T) {
	r := tokens.Rate{PerSecond: 1, Burst: 4}
	for name, test := range map[string]struct {
		earned, then float64
		after        time.Duration
		enough       bool
	}{
		"what it earned can be spent":                   {2, 2, 0, true},
		"more than it earned cannot be spent":           {2, 3, 0, false},
		"more than the burst is not kept":               {9, 5, 0, false},
		"the burst is kept":                             {9, 4, 0, true},
		"time that passed before it earned counts":      {1, 2, time.Second, true},
		"time that passed before it earned counts once": {1, 3, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			b := tokens.NewBucket(r, now)
			if !b.Spend(r, 4, now) {
				t.Fatal("a new bucket does not hold its burst")
			}
			now = now.Add(test.after)
			b.Earn(r, test.earned, now)
			if got := b.Spend(r, test.then, now); got != test.enough {
				t.Errorf("%v tokens are enough: %t, want %t", test.then, got, test.enough)
			}
		})
	}
}
