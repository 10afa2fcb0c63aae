// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("the API server is away")

// naive is a memory as one would write it down: a list, the answer that was used last at its end.
type naive struct {
	limit int
	kept  []naiveAnswer
	asked int
}

type naiveAnswer struct {
	question string
	value    int
	until    time.Time
}

func (n *naive) get(now time.Time, question string, value int, lasts time.Duration, fails bool) (int, error) {
	if i := slices.IndexFunc(n.kept, func(a naiveAnswer) bool { return a.question == question }); i >= 0 {
		a := n.kept[i]
		n.kept = append(slices.Delete(n.kept, i, i+1), a)
		if now.Before(a.until) {
			return a.value, nil
		}
	}
	n.asked++
	if fails {
		return 0, errAway
	}
	n.kept = slices.DeleteFunc(n.kept, func(a naiveAnswer) bool { return a.question == question })
	n.kept = append(n.kept, naiveAnswer{question, value, now.Add(lasts)})
	if len(n.kept) > n.limit {
		n.kept = n.kept[1:]
	}
	return value, nil
}

func TestAMemoryAnswersAsANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		const limit = 3
		memory, twin, asked := New[int](now, limit, NewMetrics().Of("token")), &naive{limit: limit}, 0
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now.SetTime(now.Now().Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second))
			question := rapid.StringMatching(`[a-e]`).Draw(t, "question")
			lasts := time.Duration(rapid.IntRange(0, 10).Draw(t, "lasts")) * time.Second
			fails := rapid.IntRange(0, 4).Draw(t, "fails") == 0
			got, err := memory.Get(context.Background(), question, func(context.Context) (int, time.Duration, error) {
				asked++
				if fails {
					return 0, 0, errAway
				}
				return step, lasts, nil
			})
			want, wantErr := twin.get(now.Now(), question, step, lasts, fails)
			if got != want || !errors.Is(err, wantErr) || asked != twin.asked {
				t.Fatalf("%s is %d (%v) after %d questions, want %d (%v) after %d", question, got, err, asked, want, wantErr, twin.asked)
			}
		}
	})
}

func TestAQuestionIsAskedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := New[string](clock.RealClock{}, 10, NewMetrics().Of("token"))
		asked, release := 0, make(chan struct{})
		ask := func(context.Context) (string, time.Duration, error) {
			asked++
			<-release
			return "alice", time.Minute, nil
		}
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if got, err := memory.Get(t.Context(), "token", ask); got != "alice" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		// A caller that goes away takes the answer from no other.
		gone, leave := context.WithCancel(t.Context())
		callers.Go(func() {
			if _, err := memory.Get(gone, "token", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that went away got %v", err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		callers.Wait()
		if asked != 1 {
			t.Errorf("the API server was asked %d times", asked)
		}
	})
}

func TestTheFirstCallerMayGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := New[string](clock.RealClock{}, 10, NewMetrics().Of("token"))
		first, leave := context.WithCancel(t.Context())
		release := make(chan struct{})
		ask := func(ctx context.Context) (string, time.Duration, error) {
			<-release
			return "alice", time.Minute, ctx.Err()
		}
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := memory.Get(first, "token", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller got %v", err)
			}
		})
		synctest.Wait()
		callers.Go(func() {
			if got, err := memory.Get(t.Context(), "token", ask); got != "alice" || err != nil {
				t.Errorf("the second caller got %q, %v", got, err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		callers.Wait()
	})
}

func TestOnlySoManyQuestionsAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := New[int](clock.RealClock{}, 10, NewMetrics().Of("token"))
		var lock sync.Mutex
		now, most, failed := 0, 0, 0
		var callers sync.WaitGroup
		for i := range 2 * atOnce {
			callers.Go(func() {
				_, err := memory.Get(t.Context(), strconv.Itoa(i), func(ctx context.Context) (int, time.Duration, error) {
					lock.Lock()
					now++
					most = max(most, now)
					lock.Unlock()
					<-ctx.Done() // an API server that never answers
					lock.Lock()
					now--
					lock.Unlock()
					return 0, 0, ctx.Err()
				})
				lock.Lock()
				defer lock.Unlock()
				if err != nil {
					failed++
				}
			})
		}
		callers.Wait()
		if most != atOnce || failed != 2*atOnce {
			t.Errorf("%d questions were asked at once, and %d failed", most, failed)
		}
	})
}
