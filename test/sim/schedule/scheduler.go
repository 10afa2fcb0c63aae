// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// Chances of disturbances, each in a thousand messages.
type Chances struct {
	// Lost: the message never arrives. Unanswered: its answer does not.
	Lost, Unanswered int
	// Late: it arrives when its sender has given up. Doubled: it arrives now, and,
	// unless it is refused, once more later.
	Late, Doubled int
	// Refused says that one that is doubled arrives once more although it was
	// refused: somebody between the two repeats whatever he likes.
	Refused bool
	// Busy: the server says that it can not now.
	Busy int
	// Crash: the sender dies, before the message left, after it arrived, or while it
	// is under way.
	Crash int
	// Sleep: the sender does nothing for up to two minutes.
	Sleep int
	// Repeated: the network delivers it twice, and the sender hears the second answer.
	Repeated int
	// Critical is how many times as often critical messages are disturbed; 0 is once.
	Critical int
}

// pace is how long a message takes at most.
const pace = 20 * time.Millisecond

// longest is how long a run may take, should nobody send anything any more.
const longest = 30 * 24 * time.Hour

// Scheduler decides who goes on. Its methods belong to the goroutine that made it.
type Scheduler struct {
	seed    uint64
	rng     *rand.Rand
	chances Chances
	begun   time.Time
	wake    chan struct{}

	mu       sync.Mutex
	actors   []*Actor
	pending  []*await
	underWay []*await // messages that were sent, and have not arrived
	turns    []*await // workers that wait for their turn
	trace    []string
	stopped  bool
}

// New is a scheduler whose decisions follow from a seed. It must be made, run and
// stopped within one bubble of testing/synctest.
func New(seed uint64) *Scheduler {
	return &Scheduler{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // to be had again, not to be secret
		begun: time.Now(), wake: make(chan struct{}, 1),
	}
}

// Rand is what the scheduler draws from; actors have their own.
func (s *Scheduler) Rand() *rand.Rand { return s.rng }

// Disturb sets how often messages are disturbed from now on.
func (s *Scheduler) Disturb(c Chances) { s.chances = c }

// Run delivers messages until so many were, until something is so (nil: never), or
// until no actor is left. It says whether it was so.
func (s *Scheduler) Run(messages int, until func() bool) bool {
	end := time.Now().Add(longest)
	for n := 0; n < messages && time.Now().Before(end); {
		synctest.Wait()
		if until != nil && until() {
			return true
		}
		if s.over() {
			return false
		}
		if s.yields() {
			continue
		}
		next := s.choose()
		if next == nil {
			s.idle()
			continue
		}
		n++
		s.settle(next)
		<-time.After(time.Duration(s.rng.Int64N(int64(pace))))
	}
	return until != nil && until()
}

// over says that nobody will ever send anything again.
func (s *Scheduler) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.underWay) == 0 && !slices.ContainsFunc(s.actors, func(a *Actor) bool { return a.alive || a.restarts })
}

// idle waits until somebody sends something, or what is held may go on.
func (s *Scheduler) idle() {
	select {
	case <-s.wake:
	case <-time.After(s.patience()):
	}
}

// patience is until when nothing happens unless somebody sends something.
func (s *Scheduler) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	patience := time.Hour
	for _, w := range s.underWay {
		patience = min(patience, max(time.Until(w.arrivesAt), time.Millisecond))
	}
	for _, w := range s.pending {
		if locked(w) {
			continue
		}
		patience = min(patience, max(time.Until(w.heldUntil), time.Millisecond))
	}
	return patience
}

// choose picks what arrives next: mostly what somebody waits for.
func (s *Scheduler) choose() *await {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetPerished()
	ready := slices.DeleteFunc(slices.Clone(s.pending), func(w *await) bool { return w.heldUntil.After(time.Now()) || locked(w) })
	slices.SortFunc(ready, func(a, b *await) int {
		return cmp.Or(cmp.Compare(a.life.actor.index, b.life.actor.index), cmp.Compare(a.index(), b.index()), cmp.Compare(a.What, b.What))
	})
	late := slices.DeleteFunc(slices.Clone(s.underWay), func(w *await) bool { return w.arrivesAt.After(time.Now()) })
	switch {
	case len(late) > 0 && (len(ready) == 0 || s.rng.IntN(3) == 0):
		return late[s.rng.IntN(len(late))]
	case len(ready) > 0:
		return ready[s.rng.IntN(len(ready))]
	}
	return nil
}

// forgetPerished drops what is too old to arrive.
func (s *Scheduler) forgetPerished() {
	s.underWay = slices.DeleteFunc(s.underWay, func(w *await) bool {
		return w.Perishes > 0 && time.Since(w.sent) > w.Perishes
	})
}

// Quiet says that nothing is under way that nobody waits for.
func (s *Scheduler) Quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetPerished()
	return len(s.underWay) == 0
}

// Stop ends every actor and what is under way. It returns when all are gone.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	s.stopped = true
	actors := slices.Clone(s.actors)
	s.underWay = nil
	s.mu.Unlock()
	for _, a := range actors {
		a.stop()
	}
	// Timers of clients outlive their requests; virtual minutes cost nothing.
	<-time.After(time.Hour)
	synctest.Wait()
}

// note adds a line to the trace.
func (s *Scheduler) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%9.3fs ", time.Since(s.begun).Seconds())+fmt.Sprintf(format, args...))
}

// Note adds a line to the trace that is not about a message.
func (s *Scheduler) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(format, args...)
}

// Trace is what happened, in order.
func (s *Scheduler) Trace() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trace)
}

// Digest of the trace: two runs with the same one were the same.
func (s *Scheduler) Digest() string {
	hash := sha256.New()
	for _, line := range s.Trace() {
		hash.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
