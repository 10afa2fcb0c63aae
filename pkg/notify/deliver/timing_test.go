// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// bubble is a notifier on a clock of its own, whose attempts a test answers.
type bubble struct {
	*Notifier
	counted
	log   logged
	began time.Time
	// attempts are "channel plan" at the time since the beginning.
	attempts []attempt
}

type attempt struct {
	What string
	At   time.Duration
}

var (
	passes  = &Failure{Step: "posting", Cause: CauseUnavailable, Status: 503, Retry: true}
	remains = &Failure{Step: "posting", Cause: CauseRefused, Status: 404}
)

// in runs a test in a bubble with the channels "a" and "b". answer is asked for
// the n-th attempt (from 1) at a plan on a channel; nil takes it.
func in(t *testing.T, o Options, answer func(ctx context.Context, channel, plan string, n int) *Failure, test func(*testing.T, *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{began: time.Now()}
		o.Recorder, o.Log = &b.counted, b.log.logger()
		b.Notifier = New(o)
		tries := map[string]int{}
		b.send = func(ctx context.Context, c notify.Channel, j *job) *Failure {
			b.counted.mu.Lock()
			what := c.Name + " " + j.event.Plan.UID
			tries[what]++
			n := tries[what]
			b.attempts = append(b.attempts, attempt{what, time.Since(b.began)})
			b.counted.mu.Unlock()
			return answer(ctx, c.Name, j.event.Plan.UID, n)
		}
		if err := b.Configure([]notify.Channel{chat("a"), chat("b")}); err != nil {
			t.Fatal(err)
		}
		test(t, b)
		_ = b.Shutdown(over())
	})
}

func chat(name string) notify.Channel {
	return notify.Channel{Name: name, Slack: &notify.SlackChannel{URL: ref("url")}}
}

// over is a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// must notify, in no time at all.
func (b *bubble) must(t *testing.T, e notify.Event, channels ...string) {
	t.Helper()
	before := time.Now()
	if err := b.Notify(e, channels...); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took != 0 {
		t.Fatalf("Notify took %s", took)
	}
}

// pass lets time pass, and everything happen that is due by then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func always(f *Failure) func(context.Context, string, string, int) *Failure {
	return func(context.Context, string, string, int) *Failure { return f }
}

// hang answers when the attempt's time is over.
func hang(ctx context.Context, _, _ string, _ int) *Failure {
	<-ctx.Done()
	return networkFailure("posting", ctx.Err())
}

func TestDelivery_Timing(t *testing.T) {
	retry := notify.Retry{AttemptTimeout: 10 * time.Second, Deadline: 2 * time.Minute, BackoffBase: 4 * time.Second, BackoffMax: 32 * time.Second}
	type bounds struct{ from, to time.Duration }
	s := time.Second
	thrice := func(_ context.Context, _, _ string, n int) *Failure {
		if n <= 3 {
			return passes
		}
		return nil
	}
	asks := func(after time.Duration) func(context.Context, string, string, int) *Failure {
		return func(_ context.Context, _, _ string, n int) *Failure {
			if n == 1 {
				return &Failure{Step: "posting", Cause: CauseUnavailable, Status: 429, Retry: true, After: after}
			}
			return nil
		}
	}
	cases := map[string]struct {
		answer func(context.Context, string, string, int) *Failure
		want   Outcome
		gaps   []bounds      // between one attempt and the next
		by     time.Duration // when the outcome is there at the latest
	}{
		"what works is sent at once":                                 {always(nil), Sent, nil, 0},
		"what will not work is given up at once":                     {always(remains), Failed, nil, 0},
		"what may pass is tried with growing random pauses":          {thrice, Sent, []bounds{{2 * s, 4 * s}, {4 * s, 8 * s}, {8 * s, 16 * s}}, 28 * s},
		"a receiver that asks for a pause gets it":                   {asks(50 * s), Sent, []bounds{{50 * s, 50 * s}}, 50 * s},
		"a pause that is shorter than ours makes ours no shorter":    {asks(time.Millisecond), Sent, []bounds{{2 * s, 4 * s}}, 4 * s},
		"a pause beyond the deadline gives up at once":               {asks(2 * time.Minute), Failed, nil, 0},
		"an attempt that hangs is cut off, and made again (the gap)": {hangOnce, Sent, []bounds{{12 * s, 14 * s}}, 14 * s},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in(t, Options{Retry: retry}, tc.answer, func(t *testing.T, b *bubble) {
				b.must(t, plan("1", notify.PlanFailed), "a")
				pass(tc.by)
				if diff := cmp.Diff(map[Outcome]int{tc.want: 1}, b.outcomes()); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
				if len(b.attempts) != len(tc.gaps)+1 {
					t.Fatalf("attempts: %v", b.attempts)
				}
				b.counted.mu.Lock()
				defer b.counted.mu.Unlock()
				if b.retries != len(tc.gaps) {
					t.Errorf("%d failures are counted, want %d", b.retries, len(tc.gaps))
				}
				for i, gap := range tc.gaps {
					if took := b.attempts[i+1].At - b.attempts[i].At; took < gap.from || took > gap.to {
						t.Errorf("pause %d: %s, want %s to %s", i+1, took, gap.from, gap.to)
					}
				}
			})
		})
	}
}

func hangOnce(ctx context.Context, channel, plan string, n int) *Failure {
	if n == 1 {
		return hang(ctx, channel, plan, n)
	}
	return nil
}

func TestDelivery_EndsByTheDeadline(t *testing.T) {
	retry := notify.Retry{AttemptTimeout: 10 * time.Second, Deadline: time.Minute, BackoffBase: time.Second, BackoffMax: 5 * time.Second}
	for name, answer := range map[string]func(context.Context, string, string, int) *Failure{"failing": always(passes), "hanging": hang} {
		t.Run(name, func(t *testing.T) {
			in(t, Options{Retry: retry}, answer, func(t *testing.T, b *bubble) {
				b.must(t, plan("1", notify.PlanFailed), "a")
				b.must(t, plan("2", notify.PlanFailed), "a")
				pass(time.Minute)
				if diff := cmp.Diff(map[Outcome]int{Failed: 2}, b.outcomes()); diff != "" {
					t.Errorf("after the deadline (-want +got):\n%s", diff)
				}
				if last := b.attempts[len(b.attempts)-1].At; len(b.attempts) < 4 || last >= time.Minute {
					t.Errorf("%d attempts, the last at %s", len(b.attempts), last)
				}
				if !strings.Contains(b.log.String(), "notification.failed") {
					t.Errorf("log: %s", b.log.String())
				}
			})
		})
	}
}

func TestDelivery_AChannelThatHangsDelaysNoOtherAndNobody(t *testing.T) {
	answer := func(ctx context.Context, channel, plan string, n int) *Failure {
		if channel == "a" {
			return hang(ctx, channel, plan, n)
		}
		return nil
	}
	in(t, Options{}, answer, func(t *testing.T, b *bubble) {
		for i := range 100 {
			b.must(t, plan(fmt.Sprint(i), notify.PlanCreated), "a", "b")
		}
		synctest.Wait()
		if diff := cmp.Diff(map[Outcome]int{Sent: 100}, b.outcomes()); diff != "" {
			t.Errorf("without any time passing (-want +got):\n%s", diff)
		}
	})
}

func TestDelivery_AFullQueueDropsAndSaysSoOnce(t *testing.T) {
	in(t, Options{Depth: 4}, hang, func(t *testing.T, b *bubble) {
		b.must(t, plan("under way", notify.PlanCreated), "a")
		synctest.Wait()
		for i := range 10 {
			b.must(t, plan(fmt.Sprint(i), notify.PlanCreated), "a")
		}
		b.must(t, plan("urgent", notify.PlanEscalated), "a")
		if diff := cmp.Diff(map[Outcome]int{Dropped: 7}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := strings.Count(b.log.String(), "notification.dropped"); n != 1 {
			t.Errorf("%d lines in the log:\n%s", n, b.log.String())
		}
	})
}

func TestDelivery_TellsOnce(t *testing.T) {
	in(t, Options{}, always(nil), func(t *testing.T, b *bubble) {
		e := plan("1", notify.PlanFailed)
		b.must(t, e, "a", "a")
		synctest.Wait()
		e.Counts.Failed = 7 // the same happening
		b.must(t, e, "a")
		b.must(t, e, "b") // another channel was not told
		synctest.Wait()
		again := e
		again.Transition = "epoch-2"
		b.must(t, again, "a")
		synctest.Wait()
		if diff := cmp.Diff(map[Outcome]int{Sent: 3, Deduplicated: 2}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDelivery_WhatFailedMayBeToldAgain(t *testing.T) {
	answer := func(_ context.Context, _, _ string, n int) *Failure {
		if n == 1 {
			return remains
		}
		return nil
	}
	in(t, Options{}, answer, func(t *testing.T, b *bubble) {
		for range 3 {
			b.must(t, plan("1", notify.PlanFailed), "a")
			synctest.Wait()
		}
		if diff := cmp.Diff(map[Outcome]int{Failed: 1, Sent: 1, Deduplicated: 1}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNotify_Refuses(t *testing.T) {
	in(t, Options{}, always(nil), func(t *testing.T, b *bubble) {
		if err := b.Notify(notify.Event{Type: "PlanDeleted"}, "a"); !errors.Is(err, notify.ErrUnknownEvent) {
			t.Errorf("an unknown type: %v", err)
		}
		err := b.Notify(plan("1", notify.PlanFailed), "x", "a", "y")
		var unknown *UnknownChannelError
		if !errors.As(err, &unknown) || unknown.Channel != "x" || !strings.Contains(err.Error(), `"y"`) {
			t.Errorf("unknown channels: %v", err)
		}
		synctest.Wait()
		if diff := cmp.Diff(map[Outcome]int{Sent: 1}, b.outcomes()); diff != "" {
			t.Errorf("the known one is told (-want +got):\n%s", diff)
		}
	})
}

func TestConfigure_ChangesChannelsWhileTheyWork(t *testing.T) {
	retry := notify.Retry{AttemptTimeout: 10 * time.Second, Deadline: time.Hour, BackoffBase: time.Minute, BackoffMax: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		var c counted
		n := New(Options{Recorder: &c, Retry: retry})
		n.send = func(_ context.Context, channel notify.Channel, _ *job) *Failure {
			if channel.Slack.Channel == "#works" {
				return nil
			}
			return passes
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		works := chat("a")
		works.Slack.Channel = "#works"
		must(n.Configure([]notify.Channel{chat("a"), chat("b")}))
		for i := range 3 {
			must(n.Notify(plan(fmt.Sprint(i), notify.PlanFailed), "a", "b"))
		}
		pass(time.Second)
		if err := n.Configure([]notify.Channel{works, works}); err == nil || !strings.Contains(err.Error(), "channels[1].name") {
			t.Errorf("two of one name: %v", err)
		}
		if diff := cmp.Diff(map[Outcome]int{}, c.outcomes()); diff != "" {
			t.Errorf("settings that are not valid change nothing (-want +got):\n%s", diff)
		}
		must(n.Configure([]notify.Channel{works}))
		synctest.Wait()
		if diff := cmp.Diff(map[Outcome]int{Dropped: 3}, c.outcomes()); diff != "" {
			t.Errorf("a channel that is gone drops what waits (-want +got):\n%s", diff)
		}
		pass(time.Minute)
		if diff := cmp.Diff(map[Outcome]int{Dropped: 3, Sent: 3}, c.outcomes()); diff != "" {
			t.Errorf("one that stays goes on with the new settings (-want +got):\n%s", diff)
		}
		must(n.Notify(plan("1", notify.PlanFailed), "a"))
		if got := c.outcomes()[Deduplicated]; got != 1 {
			t.Error("one that stays forgot what it told")
		}
		must(n.Shutdown(t.Context()))
	})
}
