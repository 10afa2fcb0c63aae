// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// seenBudget bounds one call of Seen.
const seenBudget = 5 * time.Second

// channel is the queue of one channel and the worker that empties it.
type channel struct {
	*Notifier
	ctx    context.Context // the worker's life
	cancel context.CancelFunc
	wake   chan struct{} // holds one token when something changed

	mu       sync.Mutex
	config   notify.Channel
	queue    *queue
	draining bool
	full     bool // since the last event that found room
}

func newChannel(n *Notifier, config notify.Channel) *channel {
	ctx, cancel := context.WithCancel(context.Background())
	return &channel{Notifier: n, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), config: config, queue: newQueue(n.depth)}
}

func (c *channel) set(config notify.Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = config
}

func (c *channel) settings() notify.Channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config
}

// add never waits.
func (c *channel) add(j *job) {
	c.mu.Lock()
	isNew, dropped := c.queue.push(j)
	kind, wasFull := c.config.Type(), c.full
	c.full = dropped != nil
	c.mu.Unlock()
	if !isNew {
		c.record(kind, Deduplicated)
		return
	}
	if dropped != nil {
		c.record(kind, Dropped)
	}
	if dropped != nil && !wasFull { // the counter tells of the others
		c.warn("notification.dropped", dropped, slog.String("reason", "the queue is full"))
	}
	c.signal()
}

// drain lets the worker end when nothing waits any more.
func (c *channel) drain() {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.signal()
}

// stop ends the worker, in the middle of an attempt if need be.
func (c *channel) stop() { c.cancel() }

func (c *channel) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // the worker has not looked since the last one
	}
}

// work delivers one event after the other until the channel ends.
func (c *channel) work() {
	defer c.cancel()
	defer c.dropAll()
	for c.ctx.Err() == nil {
		j, last := c.next()
		switch {
		case j != nil:
			c.finish(j, c.deliver(j))
		case last:
			return
		default:
			select {
			case <-c.wake:
			case <-c.ctx.Done():
			}
		}
	}
}

// next is the oldest job; without one, last says that none will come.
func (c *channel) next() (j *job, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j = c.queue.pop()
	return j, c.draining
}

// finish counts what became of a job and remembers what was told.
func (c *channel) finish(j *job, outcome Outcome) {
	c.mu.Lock()
	c.queue.settle(j.id, outcome == Sent || outcome == Deduplicated)
	kind := c.config.Type()
	c.mu.Unlock()
	if outcome == Dropped {
		c.dropped(kind, j)
		return
	}
	c.record(kind, outcome)
}

// dropAll drops what waits when the worker ends.
func (c *channel) dropAll() {
	c.mu.Lock()
	left := c.queue.clear()
	kind := c.config.Type()
	c.mu.Unlock()
	for _, j := range left {
		c.dropped(kind, j)
	}
}

// dropped counts a job that the end of the channel, or of everything, ended.
func (c *channel) dropped(kind notify.ChannelType, j *job) {
	c.mu.Lock()
	shutdown := c.draining
	c.mu.Unlock()
	if shutdown {
		c.undone.Add(1)
	}
	c.record(kind, Dropped)
	c.warn("notification.dropped", j, slog.String("reason", "the channel ends"))
}

// deliver tries until it works, cannot work, or time is over.
func (c *channel) deliver(j *job) Outcome {
	ctx, cancel := context.WithDeadline(c.ctx, j.deadline)
	defer cancel()
	if c.wasTold(ctx, j) {
		return Deduplicated
	}
	failure := &Failure{Step: "waiting", Cause: CauseExpired}
	for attempt := 1; ctx.Err() == nil; attempt++ {
		if failure = c.attempt(ctx, j); failure == nil {
			c.mark(j)
			return Sent
		}
		if !failure.Retry || !c.pause(ctx, j, attempt, failure) {
			break
		}
	}
	if c.ctx.Err() != nil {
		return Dropped
	}
	c.warn("notification.failed", j, slog.String("error", failure.String()))
	return Failed
}

// attempt is one attempt within its time.
func (c *channel) attempt(ctx context.Context, j *job) *Failure {
	ctx, cancel := context.WithTimeout(ctx, c.retry.AttemptTimeout)
	defer cancel()
	return c.send(ctx, c.settings(), j)
}

// pause waits before the next attempt; false when that would be too late.
func (c *channel) pause(ctx context.Context, j *job, attempt int, failure *Failure) bool {
	delay := c.retry.Delay(attempt, failure.After, rand.Float64())
	if delay >= time.Until(j.deadline) {
		return false
	}
	if c.recorder != nil {
		c.recorder.Retry(c.settings().Type())
	}
	c.log.Debug("notification.retry", "channel", c.settings().Name, "event", j.id, "attempt", attempt, "after", delay, "error", failure.String())
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// wasTold asks Seen; what is not known counts as no. A claim that is not believed is
// logged and counted.
func (c *channel) wasTold(ctx context.Context, j *job) bool {
	if c.seen == nil || ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, seenBudget)
	defer cancel()
	claim, err := c.seen.Seen(ctx, c.settings().Name, j.id)
	if err != nil {
		c.warn("notification.seen.unknown", j, slog.String("error", err.Error()))
		return false
	}
	suppressed, doubt := judge(j.event.Type, claim)
	if doubt == "" {
		return suppressed
	}
	if c.recorder != nil {
		c.recorder.Doubt(c.settings().Type(), doubt)
	}
	c.warn("notification.seen.doubted", j, slog.String("reason", string(doubt)))
	return suppressed
}

// mark notes what was told, even while the channel ends: it was told.
func (c *channel) mark(j *job) {
	if c.seen == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), seenBudget)
	defer cancel()
	if err := c.seen.Mark(ctx, c.settings().Name, j.id); err != nil {
		c.warn("notification.seen.unmarked", j, slog.String("error", err.Error()))
	}
}

// warn says what a person may have to know about an event that was not told, or that is
// told twice.
func (c *channel) warn(message string, j *job, more slog.Attr) {
	config := c.settings()
	c.log.LogAttrs(c.ctx, slog.LevelWarn, message,
		slog.String("channel", config.Name), slog.String("channel_type", string(config.Type())),
		slog.String("event", j.id), slog.String("type", string(j.event.Type)),
		slog.String("plan", j.event.Plan.Namespace+"/"+j.event.Plan.Name),
		slog.String("policy", j.event.Policy), slog.String("correlation_id", j.event.CorrelationID), more)
}
