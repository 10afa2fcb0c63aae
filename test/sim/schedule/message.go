// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// Message is what an actor asks of somebody else.
type Message struct {
	// What is asked, for the trace.
	What string
	// Writes says that it may change something. What does not is never late.
	Writes bool
	// Perishes is for how long it may be under way; zero is for ever.
	Perishes time.Duration
	// Critical messages are disturbed [Chances.Critical] times as often.
	Critical bool
}

// fate of a message.
type fate int

const (
	fine fate = iota
	lost
	unanswered
	late
	doubled
	busy
	// The sender dies: before it was sent, when it arrived, while it is under way.
	deadBefore
	deadAfter
	deadBetween
	// The sender does nothing for a while.
	asleep
	// The network repeats it at once, and the sender hears the answer to the second copy.
	repeated
)

var fates = map[fate]string{
	fine: "", lost: "is lost", unanswered: "its answer is lost", late: "is late", doubled: "is doubled", busy: "is refused as too much",
	deadBefore: "dies before it", deadAfter: "dies after it", deadBetween: "dies, and it is late", asleep: "is slept over",
	repeated: "is repeated, and answered the second time",
}

// await is a message that somebody waits for, or that is under way.
type await struct {
	Message
	life      *Life
	strand    *Strand // the worker of the life that sent it; nil in a life without workers
	sent      time.Time
	heldUntil time.Time
	arrivesAt time.Time // of one under way
	// carry carries it out, or has it refused; the result is kept for the sender.
	carry func(refused bool) (code string)
	told  chan fate
}

// timeout is how long a client waits for an answer that does not come.
const timeout = 10 * time.Second

// ErrBusy is what a store answers that can not now.
var ErrBusy = errors.New("busy")

// Call is a message to somebody who is not the API server, such as a store: do
// carries it out. An error says that it was not answered, or is that of do.
func Call[T any](ctx context.Context, l *Life, m Message, do func() (T, error)) (T, error) {
	return call(ctx, l, m, func(refused bool) (T, error) {
		if refused {
			var none T
			return none, ErrBusy
		}
		return do()
	})
}

func call[T any](ctx context.Context, l *Life, m Message, do func(refused bool) (T, error)) (T, error) {
	l.mustLive()
	var (
		answer, none T
		failed       error
	)
	strand := enter(ctx)
	w := &await{Message: m, life: l, strand: strand, sent: time.Now(), told: make(chan fate, 1)}
	w.carry = func(refused bool) string {
		answer, failed = do(refused)
		return said(answer, failed)
	}
	l.actor.s.post(w)
	select {
	case f := <-w.told:
		if f == fine || f == doubled || f == busy || f == repeated {
			return answer, failed
		}
		return none, l.suffer(ctx, f)
	case <-ctx.Done():
		l.actor.s.withdraw(w)
		l.mustLive()
		strand.turn()
		return none, ctx.Err()
	case <-l.ctx.Done():
		l.actor.s.withdraw(w)
		l.mustLive()
		return none, l.ctx.Err()
	}
}

// suffer is what the sender of a message without an answer sees, if it lives.
func (l *Life) suffer(ctx context.Context, f fate) error {
	switch f {
	case deadBefore, deadAfter, deadBetween:
		runtime.Goexit()
	case unanswered:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	case lost, late, fine, doubled, busy, asleep, repeated:
	}
	select {
	case <-time.After(timeout):
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
	l.mustLive()
	enter(ctx).turn()
	return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

func said(answer any, err error) string {
	if err != nil {
		return "error"
	}
	if response, ok := answer.(apiserver.Response); ok {
		return strconv.Itoa(response.Code)
	}
	return "done"
}

func (s *Scheduler) post(w *await) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, w)
	s.signal()
}

// withdraw takes a message back that its sender no longer waits for.
func (s *Scheduler) withdraw(w *await) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(other *await) bool { return other == w })
}

// settle decides what becomes of a message, and lets it become so.
func (s *Scheduler) settle(w *await) {
	if s.arrives(w) {
		return
	}
	f := s.fate(w)
	if f == asleep {
		return
	}
	s.withdraw(w)
	code := ""
	switch f {
	case fine, unanswered, deadAfter:
		code = w.carry(false)
	case doubled:
		// Whoever repeats a request mostly does not repeat one that was refused.
		if code = w.carry(false); s.chances.Refused || !strings.HasPrefix(code, "4") {
			s.leaveUnderWay(w)
		}
	case late, deadBetween:
		s.leaveUnderWay(w)
	case repeated:
		w.carry(false)
		code = w.carry(false)
	case busy:
		code = w.carry(true)
	case lost, deadBefore, asleep:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("%s: %s %s %s", w.sender(), w.What, code, fates[f])
	if f == deadBefore || f == deadAfter || f == deadBetween {
		w.life.kill()
	}
	w.told <- f
}

// arrives delivers a message that was under way; nobody hears the answer.
func (s *Scheduler) arrives(w *await) bool {
	s.mu.Lock()
	i := slices.Index(s.underWay, w)
	if i >= 0 {
		s.underWay = slices.Delete(s.underWay, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		return false
	}
	s.Note("%s: %s %s, arriving late", w.sender(), w.What, w.carry(false))
	return true
}

// delays are how late a message may be: before anybody notices, while its sender
// still waits for the answer, and long after.
var delays = []time.Duration{time.Second, timeout, time.Minute, 10 * time.Minute}

// leaveUnderWay leaves a copy of a message under way, if it may do anything.
func (s *Scheduler) leaveUnderWay(w *await) {
	if !w.Writes {
		return
	}
	again := *w
	again.arrivesAt = time.Now().Add(time.Duration(s.rng.Int64N(int64(delays[s.rng.IntN(len(delays))]))))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay = append(s.underWay, &again)
}

// fate draws what becomes of a message.
func (s *Scheduler) fate(w *await) fate {
	n, c := s.rng.IntN(1000), s.chances
	factor := 1
	if w.Critical && c.Critical > 0 {
		factor = c.Critical
	}
	for _, drawn := range []struct {
		chance int
		fate   fate
	}{
		{c.Lost, lost}, {c.Unanswered, unanswered}, {c.Late, late}, {c.Doubled, doubled}, {c.Busy, busy},
		{c.Crash, deadBefore + fate(s.rng.IntN(3))}, {c.Sleep, asleep}, {c.Repeated, repeated},
	} {
		if n -= factor * drawn.chance; n >= 0 {
			continue
		}
		if drawn.fate == asleep {
			return s.sleeps(w)
		}
		return drawn.fate
	}
	return fine
}

// sleeps has a sender do nothing for a while, once over each message.
func (s *Scheduler) sleeps(w *await) fate {
	if !w.heldUntil.IsZero() {
		return fine
	}
	w.heldUntil = time.Now().Add(time.Duration(s.rng.Int64N(int64(2 * time.Minute))))
	s.Note("%s sleeps over %s", w.sender(), w.What)
	return asleep
}
