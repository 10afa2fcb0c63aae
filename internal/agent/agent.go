// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Connector brings one program to ports. Only one goroutine uses it.
type Connector interface {
	// Kind of the program, such as haproxy.
	Kind() string
	// Check says why the program cannot carry a port out; nil if it can.
	Check(envoyxds.Port) error
	// Prepare checks and writes the files of a program that does not run yet.
	Prepare(ctx context.Context, ports []envoyxds.Port) error
	// CarryOut brings the program that runs to ports, and reads back whether it is there.
	CarryOut(ctx context.Context, ports []envoyxds.Port) follow.Result
}

// Counter reads what a program has counted.
type Counter interface {
	// Count returns what was counted since the call before, and the requests in flight.
	Count(ctx context.Context) (map[envoyname.Slot]Counted, error)
}

// Counted are requests to one arm.
type Counted struct {
	// Answered have an answer, FailedOver those of them from the stable variation, and GivenUp are those
	// that their client ended before.
	Answered, Failed, ClientErrors, FailedOver, GivenUp uint64
	InFlight                                            uint64
}

// Config of an agent.
type Config struct {
	Server Server
	Store  Store
	// Start the program, once its files are there; it is called once. Nil if the program runs by itself.
	Start func()
	// Flush is how often the discovery server is told of counts.
	Flush time.Duration
	Log   *slog.Logger
}

// Times of the loop.
const (
	// retryFirst and retryMost bound the pause after an attempt that proved nothing.
	retryFirst, retryMost = 100 * time.Millisecond, 5 * time.Second
	// retryLate bounds the pause while processes are late: each moment may end the last worker of before.
	retryLate = time.Second
	// look is how often a program is brought to the ports that it should have: somebody may have edited
	// its entries, or started it again.
	look = 30 * time.Second
	// again is how long after a refusal by the program a new stream brings the resources once more: a
	// person may have mended the configuration.
	again = 10 * time.Second
)

// Agent of one program. [New] makes one.
type Agent struct {
	config    Config
	connector Connector
	state     *follow.State
	metrics   *Metrics

	events  chan event
	results chan result
	stream  *stream       // nil while there is none
	ended   chan struct{} // when the loop has

	busy, prepared bool
	// due is when the next attempt begins; zero if there is no reason for one.
	due     time.Time
	pause   time.Duration
	renewAt time.Time
	stored  bool
	ready   readiness
	// current is the address of the replica that the stream is with; nil before the first.
	current atomic.Pointer[string]
}

// result of an attempt.
type result struct {
	attempt follow.Attempt
	follow.Result
	took time.Duration
	// prepared says that the files of the program are there, and nothing more.
	prepared bool
}

// New agent of a program. It holds what the store has.
func New(c Config, connector Connector, metrics *Metrics) *Agent {
	held, err := c.Store.Load()
	if err != nil {
		c.Log.Warn("agent.store.ignored", "error", err)
	}
	a := &Agent{
		config: c, connector: connector, metrics: metrics, state: follow.New(held, connector.Check),
		events: make(chan event), ended: make(chan struct{}), results: make(chan result, 1), prepared: c.Start == nil, stored: true, pause: retryFirst,
	}
	if len(held) > 0 {
		a.due = time.Now()
		c.Log.Info("agent.resumed", "resources", len(held))
	}
	return a
}

// Run follows the discovery server until ctx ends. counter may be nil.
func (a *Agent) Run(ctx context.Context, counter Counter) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { a.follow(ctx); return nil })
	group.Go(func() error { a.loop(ctx); return nil })
	if counter != nil {
		group.Go(func() error { a.tell(ctx, counter); return nil })
	}
	return group.Wait() //nolint:wrapcheck // no part returns an error
}

func (a *Agent) loop(ctx context.Context) {
	defer close(a.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-a.events:
			a.hear(e)
		case r := <-a.results:
			a.conclude(r)
		case <-timer.C:
		}
		now := time.Now()
		a.renew(now)
		if !a.busy && !a.due.IsZero() && !now.Before(a.due) {
			a.attempt(ctx)
		}
		timer.Reset(a.sleep(time.Now()))
	}
}

// sleep is the time until something is due.
func (a *Agent) sleep(now time.Time) time.Duration {
	d := time.Second
	if !a.busy && !a.due.IsZero() {
		d = min(d, a.due.Sub(now))
	}
	return max(d, 0)
}

// hear what comes of the stream.
func (a *Agent) hear(e event) {
	switch {
	case e.opened != nil:
		a.stream, a.renewAt = e.opened, time.Time{}
		a.send(a.state.Begin())
		a.metrics.connected.Set(1)
	case e.response != nil:
		a.send(a.state.Receive(time.Now(), *e.response))
		a.due, a.pause = time.Now(), retryFirst
	default:
		a.stream = nil
		a.metrics.connected.Set(0)
	}
	a.metrics.waiting(a.state.IsWaiting())
}

// send requests. A stream that cannot send ends, and the next one begins with what is in force.
func (a *Agent) send(requests []follow.Request) {
	for _, r := range requests {
		if r.Refused != "" {
			a.metrics.answers.WithLabelValues("refused").Inc()
			a.config.Log.Warn("agent.refused", "type", r.Type.String(), "reason", r.Refused)
		} else if r.Nonce != "" {
			a.metrics.answers.WithLabelValues("acknowledged").Inc()
		}
		if a.stream != nil {
			a.stream.send(r)
		}
	}
}

// attempt to bring the program to its ports, beside the loop.
func (a *Agent) attempt(ctx context.Context) {
	next, answers, due := a.state.Next()
	a.send(answers)
	a.due = time.Time{}
	if !due {
		return
	}
	a.busy = true
	prepared := a.prepared
	go func() {
		began := time.Now()
		r := result{attempt: next, prepared: !prepared}
		if prepared {
			r.Result = a.connector.CarryOut(ctx, next.Ports)
		} else {
			r.Err = a.connector.Prepare(ctx, next.Ports)
		}
		r.took = time.Since(began)
		a.results <- r
	}()
}

// conclude an attempt.
func (a *Agent) conclude(r result) {
	a.busy = false
	if r.prepared && r.Err == nil {
		a.prepared = true
		a.config.Start()
		a.due = time.Now().Add(retryFirst)
		return
	}
	proven := r.Err == nil && len(r.Late) == 0
	if proven {
		a.metrics.proofs.Observe(r.took.Seconds())
	}
	a.report(r, proven)
	// What is in force is stored before the server hears of it.
	before := a.state.Held()
	answers := a.state.Conclude(time.Now(), r.attempt, r.Result)
	if proven {
		a.ready.set(true)
		a.keep(len(answers) > 0 || len(before) != len(a.state.Held()) || a.state.IsOutdated())
	}
	at(BeforeAnswer)
	a.send(answers)
	a.metrics.waiting(a.state.IsWaiting())
	a.schedule(r, proven)
}

// schedule the next attempt.
func (a *Agent) schedule(r result, proven bool) {
	now := time.Now()
	if proven {
		a.pause = retryFirst
		if a.due.IsZero() && a.state.IsWaiting() {
			a.due = now.Add(retryFirst)
		}
		if a.due.IsZero() {
			a.due = now.Add(look)
		}
		return
	}
	if a.due.IsZero() {
		a.due = now.Add(a.pause)
		most := retryMost
		if r.Err == nil {
			most = retryLate
		}
		a.pause = min(2*a.pause, most)
	}
	if a.state.HasRefused() && a.renewAt.IsZero() {
		a.renewAt = now.Add(again)
	}
}

// report an attempt that proved nothing.
func (a *Agent) report(r result, proven bool) {
	if proven {
		return
	}
	a.config.Log.Warn("agent.unproven", "late", r.Late, "error", fmt.Sprint(r.Err))
	reason := "late"
	if _, refused := errors.AsType[*follow.RefusedError](r.Err); refused {
		reason = "refused"
	} else if r.Err != nil {
		reason = "error"
	}
	a.metrics.failures.WithLabelValues(reason).Inc()
}

// keep what is in force on the volume. Without room there the agent goes on, and tries again with the
// next proof.
func (a *Agent) keep(changed bool) {
	if !changed && a.stored {
		return
	}
	err := a.config.Store.Save(a.state.Held())
	a.stored = err == nil
	if err != nil {
		a.config.Log.Warn("agent.store.failed", "error", err)
	}
	at(AfterStore)
}

// renew the stream if only a new one tells or brings what is missing.
func (a *Agent) renew(now time.Time) {
	if a.stream == nil {
		return
	}
	if a.state.IsOutdated() || !a.renewAt.IsZero() && now.After(a.renewAt) {
		a.stream.end()
		a.stream, a.renewAt = nil, time.Time{}
	}
}

// Ready says why the program has not its ports yet; nil once it has had them.
func (a *Agent) Ready() error { return a.ready.check() }
