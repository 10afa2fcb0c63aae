// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestSequences(t *testing.T) {
	s := newStand(t)
	isUnknown(t, "before anything was put", s.ask(t, 5), redisguard.ReasonMissing)
	s.put(t, 5)
	refuses(t, "at its own sequence", s.ask(t, 5))
	behind := s.ask(t, 6)
	isUnknown(t, "asked about a later one", behind, redisguard.ReasonBehind)
	stale := s.ask(t, 4)
	isUnknown(t, "asked about an earlier one", stale, redisguard.ReasonStale)
	if behind.Sequence != 5 || stale.Sequence != 5 {
		t.Errorf("it is at %d and %d, and at 5", behind.Sequence, stale.Sequence)
	}
	if err := s.Put(t.Context(), name, uid, &ledger.Status{Sequence: 4}); !errors.Is(err, redisguard.ErrStale) {
		t.Errorf("an earlier one is put: %v", err)
	}
	refuses(t, "after an earlier one was not put", s.ask(t, 5))
	refuses(t, "a later one is put by who asks, and then", s.consult(t, 9))
}

func TestALedgerMadeAgainHasACopyOfItsOwn(t *testing.T) {
	s := newStand(t)
	s.put(t, 50)
	fresh := ledger.Begin(epoch, true)
	if got := s.Consult(t.Context(), name, "another-uid", &fresh, third(), rules(), epoch); got.Verdict != redisguard.Allowed {
		t.Errorf("the new one says %+v", got)
	}
	// An executor that slept through it still puts the old one.
	s.put(t, 51)
	if got := s.Ask(t.Context(), name, "another-uid", 1, third(), rules(), epoch); got.Verdict != redisguard.Allowed {
		t.Errorf("after the old one was put, the new one says %+v", got)
	}
}

func TestPuttingTwiceIsPuttingOnce(t *testing.T) {
	s := newStand(t)
	content := func() string {
		dump, err := s.admin.HGetAll(t.Context(), copyKey).Result()
		must(t, err)
		return fmt.Sprint(dump)
	}
	s.put(t, 5)
	once := content()
	s.put(t, 5)
	if twice := content(); once != twice {
		t.Errorf("it was\n%s\nand is\n%s", once, twice)
	}
	if ttl := s.admin.TTL(t.Context(), copyKey).Val(); ttl <= 24*time.Hour || ttl > redisguard.Lifetime {
		t.Errorf("it is kept for %s", ttl)
	}
}

// The server carries out what it was asked, and the answer never comes.
func TestAnAnswerThatIsLostIsNoHarm(t *testing.T) {
	s := newStand(t)
	proxy, err := faultproxy.Start("unix", s.redis.Socket)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	m := mirror(t, details.Config{Address: proxy.Address(), CallBudget: patience}, redisguard.Config{Budget: patience, Failures: 100})
	refuses(t, "through the proxy", m.Consult(t.Context(), name, uid, full(5), third(), rules(), epoch))
	proxy.Set(faultproxy.Fault{CutAtAnswer: true})
	if err := m.Put(t.Context(), name, uid, full(6)); err == nil {
		t.Fatal("the answer came")
	}
	proxy.Set(faultproxy.Fault{})
	refuses(t, "after its answer was lost", s.ask(t, 6))
	must(t, m.Put(t.Context(), name, uid, full(6)))
	refuses(t, "put once more", m.Ask(t.Context(), name, uid, 6, third(), rules(), epoch))
}

// What a server may lose or be spoilt by; who asks next has the ledger's word again.
var spoils = map[string]func(testing.TB, *stand){
	"FLUSHALL":                  func(tb testing.TB, s *stand) { must(tb, s.admin.FlushAll(tb.Context()).Err()) },
	"SCRIPT FLUSH":              func(tb testing.TB, s *stand) { must(tb, s.admin.ScriptFlush(tb.Context()).Err()) },
	"kill -9, and begin empty":  func(tb testing.TB, s *stand) { s.redis.Kill(); s.start(tb) },
	"a text in its place":       func(tb testing.TB, s *stand) { must(tb, s.admin.Set(tb.Context(), copyKey, "junk", 0).Err()) },
	"a list in its place":       func(tb testing.TB, s *stand) { s.replace(tb, s.admin.LPush(tb.Context(), copyKey+"x", 1).Err()) },
	"an empty copy":             func(tb testing.TB, s *stand) { s.spoil(tb, "sequence", "") },
	"a sequence of words":       func(tb testing.TB, s *stand) { s.spoil(tb, "sequence", "many") },
	"a sequence that is NaN":    func(tb testing.TB, s *stand) { s.spoil(tb, "sequence", "nan") },
	"a sequence without an end": func(tb testing.TB, s *stand) { s.spoil(tb, "sequence", "99999999999999999999999") },
	"a count of words":          func(tb testing.TB, s *stand) { s.spoil(tb, "open/p", "lots") },
	"a count below zero":        func(tb testing.TB, s *stand) { s.spoil(tb, "open", "-5") },
	"times cut off":             func(tb testing.TB, s *stand) { s.spoil(tb, "ended/p", "00177244") },
	"times that are none":       func(tb testing.TB, s *stand) { s.spoil(tb, "ended/p", "twelve-bytes") },
	"no count":                  func(tb testing.TB, s *stand) { must(tb, s.admin.HDel(tb.Context(), copyKey, "open").Err()) },
	"no sequence":               func(tb testing.TB, s *stand) { must(tb, s.admin.HDel(tb.Context(), copyKey, "sequence").Err()) },
	"a target of words":         func(tb testing.TB, s *stand) { s.spoil(tb, "target/t3", "perhaps") },
	"a breaker of words":        func(tb testing.TB, s *stand) { s.spoil(tb, "breaker/p", "ajar") },
	"a beginning of words":      func(tb testing.TB, s *stand) { s.spoil(tb, "grants-from", "soon") },
}

func (s *stand) spoil(tb testing.TB, field, value string) {
	tb.Helper()
	must(tb, s.admin.HSet(tb.Context(), copyKey, field, value).Err())
}

// replace puts another key in place of the copy.
func (s *stand) replace(tb testing.TB, err error) {
	tb.Helper()
	must(tb, err)
	must(tb, s.admin.Rename(tb.Context(), copyKey+"x", copyKey).Err())
}

func TestACopyThatIsLostOrSpoiltIsMadeAgain(t *testing.T) {
	for title, spoil := range spoils {
		t.Run(title, func(t *testing.T) {
			s := newStand(t)
			s.put(t, 5)
			refuses(t, "before", s.ask(t, 5))
			spoil(t, s)
			if a := s.ask(t, 5); a.Verdict == redisguard.Allowed {
				t.Errorf("afterwards it says %+v", a)
			}
			// The connections to a server that was killed are found to be broken.
			poll.Until(t, patience, "it refuses again", func() error {
				if a := s.consult(t, 5); !a.Vetoed() {
					return fmt.Errorf("it says %+v", a)
				}
				return nil
			})
			refuses(t, "in the end", s.ask(t, 5))
		})
	}
}

// Somebody who writes what a mirror could have written. The ledger is at hand, so
// it shows.
func TestACopyThatContradictsItsLedgerIsMadeAgain(t *testing.T) {
	free := request(9, "q", "t9")
	for title, test := range map[string]struct {
		field, value string
		r            ledger.Request
		spoilt       redisguard.Verdict
	}{
		"fewer steps than there are":      {"open/p", "0", third(), redisguard.Allowed},
		"more steps than there are":       {"open/q", "99", free, redisguard.Refused},
		"a breaker that is open":          {"breaker/q", "stuck", free, redisguard.Refused},
		"a target that is written":        {"target/t9", "written", free, redisguard.Refused},
		"a step that has its entry":       {"step/plan-3/0", "1", third(), redisguard.Allowed},
		"a ledger that was only now made": {"grants-from", fmt.Sprint(epoch.Add(time.Hour).Unix()), free, redisguard.Refused},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStand(t)
			s.put(t, 5)
			s.spoil(t, test.field, test.value)
			if a := s.Ask(t.Context(), name, uid, 5, test.r, rules(), epoch); a.Verdict != test.spoilt {
				t.Fatalf("spoilt, it says %+v", a)
			}
			want := byLedger(full(5), test.r, rules(), epoch)
			if diff := cmp.Diff(want, bySay(s.Consult(t.Context(), name, uid, full(5), test.r, rules(), epoch))); diff != "" {
				t.Errorf("consulted (-ledger +copy):\n%s", diff)
			}
			if diff := cmp.Diff(want, bySay(s.Ask(t.Context(), name, uid, 5, test.r, rules(), epoch))); diff != "" {
				t.Errorf("asked again (-ledger +copy):\n%s", diff)
			}
		})
	}
}

func TestASnapshotFromBeforeIsBehind(t *testing.T) {
	s := newStand(t)
	s.put(t, 5)
	dump := s.admin.Dump(t.Context(), copyKey).Val()
	s.put(t, 8)
	must(t, s.admin.RestoreReplace(t.Context(), copyKey, 0, dump).Err())
	isUnknown(t, "restored", s.ask(t, 8), redisguard.ReasonBehind)
	refuses(t, "asked with the ledger at hand", s.consult(t, 8))
}

// A server that saved, was killed later, and comes back as it was then.
func TestAServerThatComesBackFromAnOldSnapshotIsBehind(t *testing.T) {
	s := newStand(t, "--dbfilename", "dump.rdb")
	s.put(t, 5)
	must(t, s.admin.Save(t.Context()).Err())
	s.put(t, 8)
	s.redis.Kill()
	if _, err := os.Stat(filepath.Join(s.directory, "dump.rdb")); err != nil {
		t.Fatal(err)
	}
	s.start(t, "--dbfilename", "dump.rdb")
	poll.Until(t, patience, "it is behind", func() error {
		if a := s.ask(t, 8); a.Reason != redisguard.ReasonBehind || a.Sequence != 5 {
			return fmt.Errorf("it says %+v", a)
		}
		return nil
	})
	refuses(t, "asked with the ledger at hand", s.consult(t, 8))
}

// Through a whole life of a ledger: whatever is lost in between, who asks with the
// ledger at hand has the ledger's answer.
func TestThroughFlushesAndOldSnapshotsTheCopySaysWhatTheLedgerSays(t *testing.T) {
	s, ledgers := newStand(t), 0
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t, s.Mirror, next(&ledgers), drawRules(t))
		key := prefix + ":mirror:{" + name + "/" + l.uid + "}"
		var old string
		acts := l.acts()
		add := func(title string, do func() error) {
			acts[title] = func(t *rapid.T) {
				if err := do(); err != nil && !errors.Is(err, redis.Nil) {
					t.Fatal(err)
				}
			}
		}
		add("all is flushed", func() error { return s.admin.FlushAll(t.Context()).Err() })
		add("scripts are flushed", func() error { return s.admin.ScriptFlush(t.Context()).Err() })
		add("somebody writes there", func() error { return s.admin.Set(t.Context(), key, "junk", 0).Err() })
		add("a snapshot is made", func() (err error) { old, err = s.admin.Dump(t.Context(), key).Result(); return err })
		add("it comes back", func() error {
			if old == "" {
				return nil
			}
			return s.admin.RestoreReplace(t.Context(), key, 0, old).Err()
		})
		t.Repeat(acts)
	})
}

func TestASlowRedisIsLeftAlone(t *testing.T) {
	s := newStand(t)
	s.put(t, 5)
	proxy, err := faultproxy.Start("unix", s.redis.Socket)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	m := mirror(t, details.Config{Address: proxy.Address()}, redisguard.Config{Rest: 3 * time.Second})
	ask := func() redisguard.Answer { return m.Ask(t.Context(), name, uid, 5, third(), rules(), epoch) }
	// Nothing passes until the fault is over, so each answer comes before that of Redis.
	proxy.Set(faultproxy.Fault{Hold: true})
	for range redisguard.Failures {
		answered := make(chan redisguard.Answer, 1)
		go func() { answered <- ask() }()
		isUnknown(t, "slow", poll.Receive(t, patience, "the call gives Redis up", answered), redisguard.ReasonSlow)
	}
	connections := proxy.Total()
	for range 100 {
		isUnknown(t, "after that", ask(), redisguard.ReasonResting)
	}
	if now := proxy.Total(); now != connections {
		t.Errorf("a mirror that leaves Redis alone opened %d connections", now-connections)
	}
	proxy.Set(faultproxy.Fault{})
	proxy.Cut()
	// An answer that a busy machine makes late costs another rest.
	poll.Until(t, 3*patience, "it is asked again", func() error {
		if a := ask(); !a.Vetoed() {
			return fmt.Errorf("it says %+v", a)
		}
		return nil
	})
}

func TestARedisThatHangsIsSlow(t *testing.T) {
	s := newStand(t)
	s.put(t, 5)
	m := mirror(t, details.Config{Address: s.redis.Socket}, redisguard.Config{})
	must(t, s.redis.Signal(syscall.SIGSTOP))
	isUnknown(t, "stopped", m.Ask(t.Context(), name, uid, 5, third(), rules(), epoch), redisguard.ReasonSlow)
	must(t, s.redis.Signal(syscall.SIGCONT))
}

func TestARedisThatIsAwayIsUnreachable(t *testing.T) {
	s := newStand(t)
	s.redis.Kill()
	isUnknown(t, "killed", s.ask(t, 5), redisguard.ReasonUnreachable)
}

func TestAFullRedisTakesNoCopyAndAnswersFromTheOneItHas(t *testing.T) {
	s := newStand(t, "--maxmemory-policy", "noeviction")
	s.put(t, 5)
	must(t, s.admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	refuses(t, "full", s.ask(t, 5))
	err := s.Put(t.Context(), name, uid, full(6))
	if failure, ok := errors.AsType[*redisguard.MirrorError](err); !ok || failure.Reason != redisguard.ReasonServerError || !redis.HasErrorPrefix(failure.Err, "OOM") {
		t.Errorf("putting says %v", err)
	}
	if a := s.consult(t, 6); a.Verdict != redisguard.Unknown {
		t.Errorf("without a copy of what it is asked about it says %+v", a)
	}
	must(t, s.admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
	refuses(t, "with room again", s.consult(t, 6))
}

// Somebody else's script without an end.
func TestABusyRedisIsAnErrorOfTheServer(t *testing.T) {
	s := newStand(t, "--busy-reply-threshold", "1")
	s.put(t, 5)
	other := s.redis.Client()
	t.Cleanup(func() { _ = other.Close() })
	var running sync.WaitGroup
	running.Go(func() { _ = other.Eval(t.Context(), "while true do end", nil).Err() }) // it is killed below
	poll.True(t, patience, "it is busy", func() bool { return redis.HasErrorPrefix(s.admin.Ping(t.Context()).Err(), "BUSY") })
	isUnknown(t, "busy", s.ask(t, 5), redisguard.ReasonServerError)
	must(t, s.admin.ScriptKill(t.Context()).Err())
	running.Wait()
	refuses(t, "no longer busy", s.ask(t, 5))
}

// Two executors put copies at the same time; the later one is left.
func TestOfTwoWritersTheLaterOneWins(t *testing.T) {
	s := newStand(t)
	other := mirror(t, details.Config{Address: s.redis.Socket, CallBudget: patience}, redisguard.Config{Budget: patience})
	const last = 300
	var writers sync.WaitGroup
	for _, m := range []*redisguard.Mirror{s.Mirror, other} {
		writers.Go(func() {
			for sequence := int64(1); sequence <= last; sequence++ {
				if err := m.Put(t.Context(), name, uid, full(sequence)); err != nil && !errors.Is(err, redisguard.ErrStale) {
					t.Errorf("at %d: %v", sequence, err)
				}
			}
		})
	}
	writers.Wait()
	refuses(t, "in the end", s.ask(t, last))
}
