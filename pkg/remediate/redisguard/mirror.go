// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

//go:embed ask.lua
var askSource string

//go:embed put.lua
var putSource string

// A script is called by its digest, and sent as a whole to a server that does not
// have it: after a restart, or SCRIPT FLUSH.
var (
	askScript = redis.NewScript(askSource)
	putScript = redis.NewScript(putSource)
)

// What a Config means by zero.
const (
	// Budget bounds a call.
	Budget = 50 * time.Millisecond
	// Failures in a row, after which Redis is left alone.
	Failures = 3
	// Rest is for how long.
	Rest = 5 * time.Second
)

// Config of a Mirror.
type Config struct {
	// Prefix of all keys of the installation.
	Prefix string
	// Budget bounds every call of the Mirror, and Consult as a whole.
	Budget time.Duration
	// Failures in a row (no answer, or none in time) after which Redis is left
	// alone for Rest.
	Failures int
	Rest     time.Duration
	// Metrics may be nil.
	Metrics *Metrics
}

// Mirror keeps copies of ledgers in Redis and asks them. Its methods may be called
// from any goroutine.
type Mirror struct {
	client  redis.Scripter
	prefix  string
	budget  time.Duration
	circuit circuit
	metrics *Metrics
}

// New returns a mirror on a client that repeats nothing by itself and keeps the
// context's deadline, like those of package details. A nil client is an
// installation without Redis: nothing is ever vetoed.
func New(client redis.Scripter, cfg Config) *Mirror {
	m := &Mirror{
		client: client, prefix: cfg.Prefix, budget: cmp.Or(cfg.Budget, Budget), metrics: cfg.Metrics,
		circuit: circuit{failures: cmp.Or(cfg.Failures, Failures), rest: cmp.Or(cfg.Rest, Rest)},
	}
	if m.metrics == nil {
		m.metrics = newMetrics()
	}
	return m
}

// Consult asks whether a limit refuses a step, given the ledger as its caller has
// just read it. A copy that is missing, behind or damaged is put first, and so is
// one that contradicts the ledger: as long as it refuses, nobody would write the
// ledger, and put another. What it says then stands. All of it keeps the budget of
// one call.
func (m *Mirror) Consult(ctx context.Context, name, uid string, s *ledger.Status, r ledger.Request, rules ledger.Rules, now time.Time) Answer {
	ctx, cancel := context.WithTimeout(ctx, m.budget)
	defer cancel()
	answer := m.Ask(ctx, name, uid, s.Sequence, r, rules, now)
	contradicts := contradicts(answer, s, r, rules, now)
	if contradicts {
		m.metrics.contradictions.Inc()
	}
	if !contradicts && !answer.wantsCopy() {
		return answer
	}
	if err := m.Put(ctx, name, uid, s); err != nil {
		answer.Err = err
		return answer
	}
	return m.Ask(ctx, name, uid, s.Sequence, r, rules, now)
}

// contradicts says that a copy of this very sequence says something else than the
// ledger.
func contradicts(answer Answer, s *ledger.Status, r ledger.Request, rules ledger.Rules, now time.Time) bool {
	if answer.Verdict == Unknown {
		return false
	}
	closed := func(g ledger.Gate) bool { return !g.Open }
	allowed := ledger.Find(s, r.Step) != nil || !slices.ContainsFunc(ledger.Gates(s, r, rules, now), closed)
	return allowed != (answer.Verdict == Allowed)
}

// Ask asks the copy of a ledger, by the sequence that the caller knows it at,
// whether a limit refuses a step at a time by the API server's clock. The step
// that has an entry already is Allowed. There is no error: whatever goes wrong
// makes the answer Unknown, and the ledger decides.
func (m *Mirror) Ask(ctx context.Context, name, uid string, sequence int64, r ledger.Request, rules ledger.Rules, now time.Time) Answer {
	answer := m.ask(ctx, name, uid, sequence, r, rules, now)
	m.metrics.answered(answer)
	return answer
}

func (m *Mirror) ask(ctx context.Context, name, uid string, sequence int64, r ledger.Request, rules ledger.Rules, now time.Time) Answer {
	if !mirrors(sequence) {
		return unknown(ReasonUnready, nil)
	}
	reply, err := m.call(ctx, callAsk, func(ctx context.Context) *redis.Cmd {
		return askScript.RunRO(ctx, m.client, []string{key(m.prefix, name, uid)}, question(sequence, r, rules, now)...)
	})
	if failure, ok := errors.AsType[*MirrorError](err); ok {
		return unknown(failure.Reason, failure.Err)
	}
	return answered(reply, rules, now)
}

// Put copies a ledger as it is stored in the API server; what is not stored there
// must not be put. It fails with [ErrStale] when Redis has a later one, and with a
// [MirrorError] in any case. Whoever calls it may go on: a copy that is not put is
// found to be behind.
func (m *Mirror) Put(ctx context.Context, name, uid string, s *ledger.Status) error {
	err := m.put(ctx, name, uid, s)
	m.metrics.put(err)
	return err
}

func (m *Mirror) put(ctx context.Context, name, uid string, s *ledger.Status) error {
	if !mirrors(s.Sequence) {
		return &MirrorError{ReasonUnready, fmt.Errorf("putting a ledger at sequence %d: there is no such", s.Sequence)}
	}
	args := append([]any{s.Sequence, int64(Lifetime / time.Second)}, fields(s)...)
	reply, err := m.call(ctx, callPut, func(ctx context.Context) *redis.Cmd {
		return putScript.Run(ctx, m.client, []string{key(m.prefix, name, uid)}, args...)
	})
	if err != nil {
		return err
	}
	switch words, _ := textsOf(reply); {
	case len(words) == 2 && words[0] == "stored":
		return nil
	case len(words) == 2 && words[0] == "stale":
		return &MirrorError{ReasonStale, fmt.Errorf("putting a ledger at sequence %d: %w: %.20q", s.Sequence, ErrStale, words[1])}
	}
	return &MirrorError{ReasonNonsense, fmt.Errorf("putting a ledger: redis answers %.60q", fmt.Sprint(reply))}
}

func mirrors(sequence int64) bool { return sequence > 0 && sequence <= maxSequence }

// call makes a call within the budget, unless Redis is left alone.
func (m *Mirror) call(ctx context.Context, name string, do func(context.Context) *redis.Cmd) (any, error) {
	if m.client == nil {
		return nil, &MirrorError{ReasonDisabled, errors.New("there is no redis")}
	}
	if err := ctx.Err(); err != nil {
		return nil, &MirrorError{ReasonCanceled, err}
	}
	begin := time.Now()
	if !m.circuit.enter(begin) {
		return nil, &MirrorError{ReasonResting, errors.New("redis failed several times in a row")}
	}
	bounded, cancel := context.WithTimeout(ctx, m.budget)
	defer cancel()
	reply, err := do(bounded).Result()
	why, how := outcomeOf(ctx, err)
	end := time.Now()
	m.circuit.leave(how, end)
	m.metrics.called(name, end.Sub(begin), m.circuit.resting())
	if err != nil {
		return nil, &MirrorError{why, err}
	}
	return reply, nil
}

// outcomeOf says what an error of the client means. ctx is the caller's: when that
// has been canceled, Redis is not to blame.
func outcomeOf(ctx context.Context, err error) (Reason, outcome) {
	if err == nil {
		return noReason, worked
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ReasonCanceled, abandoned
	}
	if errors.Is(err, redis.Nil) {
		return ReasonNonsense, worked
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return ReasonServerError, worked
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) {
		return ReasonSlow, failed
	}
	return ReasonUnreachable, failed
}
