// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Bounds of the writer.
const (
	// DefaultDepth is how many records wait at most.
	DefaultDepth = 4096
	// maxBatch is how many records go into one pipeline.
	maxBatch = 128
	// pauseMin and pauseMax bound the wait after a failed call, so that an
	// absent Redis costs a few dials a second and not a busy loop.
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
	// trimEvery is how often entries older than Retention are removed.
	trimEvery = time.Minute
)

// Writer queues records for the stream. Make one with NewWriter, keep one
// goroutine in Run, and call Enqueue from anywhere.
type Writer struct {
	client  redis.UniversalClient
	key     string
	queue   chan specguard.WriteRecord
	metrics *writerMetrics
	log     *slog.Logger
	now     func() time.Time
	budget  time.Duration // of one call
}

// NewWriter returns a writer of "<prefix>:details" with room for depth records
// (DefaultDepth when depth is not positive). A nil client drops every record:
// that is what an installation without Redis does. A nil log is a silent one.
func NewWriter(client redis.UniversalClient, prefix string, depth int, log *slog.Logger) *Writer {
	if depth <= 0 {
		depth = DefaultDepth
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Writer{
		client: client,
		key:    streamKey(prefix),
		queue:  make(chan specguard.WriteRecord, depth),
		log:    log,
		now:    time.Now,
		budget: budgetOf(client),
	}
	w.metrics = newWriterMetrics(func() float64 { return float64(len(w.queue)) })
	return w
}

// Enqueue hands a record over without ever waiting. It reports false when the
// record was dropped, which is counted by reason. Of long lists of paths and
// groups the first ones are kept; a record with endless names, which whoever
// reaches the port may have made up, is dropped here, as the reader would drop it:
// what waits, and what Redis holds, is bounded in bytes by that.
func (w *Writer) Enqueue(rec specguard.WriteRecord) bool {
	if w.client == nil {
		w.metrics.dropped.WithLabelValues(dropDisabled).Inc()
		return false
	}
	if oversized(&rec) {
		w.metrics.dropped.WithLabelValues(dropOversized).Inc()
		return false
	}
	shorten(&rec)
	select {
	case w.queue <- rec:
		return true
	default:
		w.metrics.dropped.WithLabelValues(dropFull).Inc()
		return false
	}
}

// Run writes what is queued until ctx ends; then it makes one last attempt
// for what is still waiting and returns nil. Errors of Redis are counted and
// logged at the change between working and failing, never returned.
func (w *Writer) Run(ctx context.Context) error {
	if w.client == nil {
		<-ctx.Done()
		return nil
	}
	pump := &pump{Writer: w, pause: pauseMin}
	for ctx.Err() == nil { // select alone chooses at random among what is ready
		select {
		case <-ctx.Done():
			continue
		case rec := <-w.queue:
			pump.batch = append(pump.batch[:0], rec)
		case <-pump.retest():
			pump.note(pump.ping(ctx))
			continue
		}
		w.fill(pump)
		pump.deliver(ctx)
	}
	w.drain(context.WithoutCancel(ctx), pump)
	return nil
}

// fill adds what waits already, without waiting for more.
func (w *Writer) fill(p *pump) {
	for len(p.batch) < maxBatch {
		select {
		case rec := <-w.queue:
			p.batch = append(p.batch, rec)
		default:
			return
		}
	}
}

// drain writes what is left. The first failure ends it: the process is about
// to stop and a dead Redis must not hold it.
func (w *Writer) drain(ctx context.Context, p *pump) {
	for {
		p.batch = p.batch[:0]
		w.fill(p)
		if len(p.batch) == 0 {
			return
		}
		if err := p.send(ctx); err != nil {
			w.metrics.dropped.WithLabelValues(dropRedis).Add(float64(len(p.batch) + len(w.queue)))
			return
		}
	}
}

// pump is the state of one Run.
type pump struct {
	*Writer
	batch    []specguard.WriteRecord
	pause    time.Duration
	failing  bool
	lastTrim time.Time
}

// deliver sends the batch. A batch that certainly did not leave (no connection)
// is kept and tried again; any other failed batch is dropped, since part of it
// may have been written.
func (p *pump) deliver(ctx context.Context) {
	for {
		err := p.send(ctx)
		p.note(err)
		if err == nil {
			p.pause = pauseMin
			return
		}
		if redis.IsOOMError(err) {
			p.makeRoom(ctx)
		}
		keep := neverSent(err)
		if !keep {
			p.metrics.dropped.WithLabelValues(dropRedis).Add(float64(len(p.batch)))
		}
		select {
		case <-ctx.Done():
			if keep {
				p.metrics.dropped.WithLabelValues(dropRedis).Add(float64(len(p.batch)))
			}
			return
		case <-time.After(p.pause):
		}
		p.pause = min(2*p.pause, pauseMax)
		if !keep {
			return
		}
	}
}

// makeRoom removes the older half of the stream, or as much as the server does
// in one call, because Redis has no memory for more records. They are large only
// if somebody made them so, and would keep true ones out until they are a day
// old. A reader that had not come so far sees a gap.
func (p *pump) makeRoom(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.budget)
	defer cancel()
	length, err := p.client.XLen(ctx, p.key).Result()
	if err != nil {
		return // the next write tells that there is still no room
	}
	if removed, err := p.client.XTrimMaxLenApprox(ctx, p.key, length/2, 0).Result(); err == nil {
		p.log.Warn("details.writer.full", "records", length, "removed", removed)
	}
}

// retest says when a failing server is asked again although nothing waits for
// it: without that an idle writer would show a failure that is long over.
func (p *pump) retest() <-chan time.Time {
	if !p.failing {
		return nil
	}
	return time.After(p.pause)
}

// ping asks whether the server answers.
func (p *pump) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	if err := p.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("asking the details stream's server: %w", err)
	}
	return nil
}

// send writes the batch as one pipeline within the budget.
func (p *pump) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.budget)
	defer cancel()
	now := p.now()
	pipe := p.client.Pipeline()
	for i := range p.batch {
		raw, err := json.Marshal(&p.batch[i])
		if err != nil {
			return fmt.Errorf("encoding a record: %w", err)
		}
		pipe.XAdd(ctx, &redis.XAddArgs{
			Stream: p.key,
			MaxLen: maxStreamLength,
			Approx: true,
			Values: []any{recordField, raw},
		})
	}
	trim := now.Sub(p.lastTrim) >= trimEvery
	if trim {
		oldest := strconv.FormatInt(now.Add(-Retention).UnixMilli(), 10)
		pipe.XTrimMinIDApprox(ctx, p.key, oldest, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("writing to the details stream: %w", err)
	}
	if trim {
		p.lastTrim = now
	}
	p.metrics.written.Add(float64(len(p.batch)))
	return nil
}

// note logs the change between working and failing, not every failure.
func (p *pump) note(err error) {
	switch {
	case err != nil && !p.failing:
		p.log.Warn("details.writer.failing", "error", err.Error())
	case err == nil && p.failing:
		p.log.Info("details.writer.recovered")
	}
	p.failing = err != nil
	p.metrics.setUp(err == nil)
}

// neverSent says that the error came before the first byte left.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
