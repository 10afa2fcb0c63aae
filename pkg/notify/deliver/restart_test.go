// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// book is a Seen in memory that may be broken.
type book struct {
	told   map[string]Claim
	broken error
	hangs  bool
}

func (b *book) Seen(ctx context.Context, channel, id string) (Claim, error) {
	if b.hangs {
		<-ctx.Done()
		return NotTold, ctx.Err()
	}
	return b.told[channel+" "+id], b.broken
}

func (b *book) Mark(ctx context.Context, channel, id string) error {
	if b.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if b.broken == nil {
		b.told[channel+" "+id] = Proven
	}
	return b.broken
}

func TestDelivery_WhatWasToldBeforeARestart(t *testing.T) {
	e := plan("1", notify.PlanCompleted)
	cases := map[string]struct {
		book     book
		answer   *Failure
		want     map[Outcome]int
		marked   bool
		attempts int
		logs     string
	}{
		"was told: it is not told again":                           {book{told: map[string]Claim{"a " + e.ID(): Proven}}, nil, map[Outcome]int{Deduplicated: 1}, true, 0, ""},
		"was told on another channel: it is told":                  {book{told: map[string]Claim{"b " + e.ID(): Proven}}, nil, map[Outcome]int{Sent: 1}, true, 1, ""},
		"what is told is marked":                                   {book{told: map[string]Claim{}}, nil, map[Outcome]int{Sent: 1}, true, 1, ""},
		"what failed is not marked":                                {book{told: map[string]Claim{}}, remains, map[Outcome]int{Failed: 1}, false, 1, ""},
		"not known: rather twice than not at all":                  {book{told: map[string]Claim{}, broken: errors.New("redis is away")}, nil, map[Outcome]int{Sent: 1}, false, 1, "redis is away"},
		"a memory that hangs costs seconds and not a notification": {book{told: map[string]Claim{}, hangs: true}, nil, map[Outcome]int{Sent: 1}, false, 1, "deadline exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in(t, Options{Seen: &tc.book}, always(tc.answer), func(t *testing.T, b *bubble) {
				b.must(t, e, "a")
				pass(time.Minute)
				if diff := cmp.Diff(tc.want, b.outcomes()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if (tc.book.told["a "+e.ID()] == Proven) != tc.marked || len(b.attempts) != tc.attempts {
					t.Errorf("marked %v, attempts %v", tc.book.told, b.attempts)
				}
				if !strings.Contains(b.log.String(), tc.logs) {
					t.Errorf("log: %s", b.log.String())
				}
			})
		})
	}
}

func TestShutdown_DeliversWhatWaits(t *testing.T) {
	answer := func(_ context.Context, _, _ string, n int) *Failure {
		if n == 1 {
			return passes
		}
		return nil
	}
	in(t, Options{}, answer, func(t *testing.T, b *bubble) {
		for i := range 20 {
			b.must(t, plan(fmt.Sprint(i), notify.PlanFailed), "a", "b")
		}
		if err := b.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[Outcome]int{Sent: 40}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := b.Notify(plan("late", notify.PlanFailed), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if err := b.Configure(nil); !errors.Is(err, ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestShutdown_DropsWhatItHasNoTimeFor(t *testing.T) {
	in(t, Options{}, hang, func(t *testing.T, b *bubble) {
		for i := range 5 {
			b.must(t, plan(fmt.Sprint(i), notify.PlanFailed), "a")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		err := b.Shutdown(ctx)
		var undelivered *UndeliveredError
		if !errors.As(err, &undelivered) || undelivered.Events != 5 || time.Since(before) != time.Second {
			t.Errorf("%v after %s", err, time.Since(before))
		}
		if diff := cmp.Diff(map[Outcome]int{Dropped: 5}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
