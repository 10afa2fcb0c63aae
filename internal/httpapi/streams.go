// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

const (
	// maxStreams is how many streams a user may have.
	maxStreams = 50
	// pingInterval is between two signs of life.
	pingInterval = 15 * time.Second
	// writeWithin bounds each write: a caller who does not read ends the stream.
	writeWithin = 5 * time.Second
)

// errEnded says that Plumbline ends.
var errEnded = errors.New("plumbline ends")

// streams are the streams of events that are open, and the feeds that they share.
type streams struct {
	*server
	// ended is closed when no stream may go on.
	ended chan struct{}
	end   func()

	// common is the feed of all callers; nil where each has feeds of their own.
	common *shared
	counts *StreamMetrics

	mu    sync.Mutex
	feeds map[audience]*shared
	open  map[string]int
	// running are the streams that are open.
	running sync.WaitGroup
}

// audience names the hearers of a feed: the rights of one user decide about its events.
type audience struct{ user, namespace string }

// shared is a feed that runs while it has streams.
type shared struct {
	*feed
	streams int
	stop    context.CancelFunc
	stopped chan struct{}
}

func newStreams(s *server) *streams {
	ended := make(chan struct{})
	all := &streams{server: s, ended: ended, counts: newStreamMetrics(), feeds: map[audience]*shared{}, open: map[string]int{}}
	all.end = sync.OnceFunc(func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		close(ended)
	})
	if _, is := s.cluster.(Shared); is {
		all.common = &shared{feed: newFeed(s.cluster, s.log, "")}
	}
	return all
}

// isEnded tells whether no stream may go on.
func (s *streams) isEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// join returns what a new stream hears, once its feed has all objects, and how the stream leaves.
func (s *streams) join(ctx context.Context, of audience) (h hearing, leave func(), err error) {
	f, err := s.enter(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-f.loaded:
		h, err = s.hearingOf(ctx, of, f)
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the first events: %w", ctx.Err())
	}
	if err != nil {
		s.leave(of, f)
		return nil, nil, err
	}
	return h, func() {
		h.leave()
		s.leave(of, f)
	}, nil
}

func (s *streams) hearingOf(ctx context.Context, of audience, f *shared) (hearing, error) {
	if s.common == nil {
		return whole{f.feed}, f.ended()
	}
	return admit(ctx, f.feed, s.cluster.(Shared), of.namespace) //nolint:forcetypeassert // it was looked at
}

// enter counts a stream, and starts the feed with the first one. The feed lasts as long as its streams.
func (s *streams) enter(ctx context.Context, of audience) (*shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of.user] >= maxStreams {
		return nil, wire.NewProblem(wire.TooManyRequests, fmt.Sprintf("you have %d streams: end one of them", maxStreams))
	}
	if s.isEnded() {
		return nil, wire.NewProblem(wire.Unavailable, "the server ends: try again")
	}
	s.open[of.user]++
	s.running.Add(1)
	if s.common != nil {
		return s.common, nil
	}
	f := s.feeds[of]
	if f == nil || f.ended() != nil {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &shared{feed: newFeed(s.cluster, s.log, of.namespace), stop: stop, stopped: make(chan struct{})}
		s.feeds[of] = f
		go func() {
			defer close(f.stopped)
			f.run(running)
		}()
	}
	f.streams++
	return f, nil
}

// leave ends the feed with its last stream, unless it is that of all callers.
func (s *streams) leave(of audience, f *shared) {
	if !s.isLast(of, f) {
		return
	}
	f.stop()
	<-f.stopped
}

func (s *streams) isLast(of audience, f *shared) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of.user]--; s.open[of.user] == 0 {
		delete(s.open, of.user)
	}
	s.running.Done()
	if f == s.common {
		return false
	}
	if f.streams--; f.streams > 0 {
		return false
	}
	if s.feeds[of] == f {
		delete(s.feeds, of)
	}
	return true
}

// wait returns when no stream is open, or its context ends. It follows end.
func (s *streams) wait(ctx context.Context) {
	none := make(chan struct{})
	go func() {
		defer close(none)
		s.running.Wait()
	}()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// sink is the connection of a stream. Each of its writes ends within writeWithin.
type sink interface {
	begin() error
	send(ctx context.Context, news []events.Frame) error
	ping(ctx context.Context) error
	end(last *wire.Event)
}

// listening is what one stream hears, and how far it is.
type listening struct {
	hearing
	namespace string
	// begun is the time of the event that the caller named, or of now.
	begun time.Time
	at    position
	// first are the notices that the stream begins with.
	first []events.Frame
}

// tell sends events until the stream ends, and tells the caller why it does.
func (s *streams) tell(ctx context.Context, l *listening, to sink) {
	s.counts.open.Inc()
	defer s.counts.open.Dec()
	err := s.pump(ctx, l, to)
	end := endOf(err)
	s.counts.ends.WithLabelValues(end.reason).Inc()
	if end.reason == endFailed {
		s.log.Info("a stream of events has ended", "error", err)
	}
	if end.code != 0 {
		to.end(&wire.Event{
			Type: wire.EventEnded, Namespace: l.namespace, Status: end.status, Code: int(end.code), Message: end.message, Timestamp: s.cluster.Now().UTC(),
		})
	}
}

// pump sends events until the stream ends, and returns why.
func (s *streams) pump(ctx context.Context, l *listening, to sink) error {
	if err := to.begin(); err != nil {
		return &sinkError{err}
	}
	if err := s.sendAll(ctx, to, l.first); err != nil {
		return err
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		news, changed, failure := l.hear(ctx, &l.at)
		if err := s.sendAll(ctx, to, news); err != nil {
			return err
		}
		switch {
		case s.isEnded(): // also a stream that always has news
			return errEnded
		case len(news) > 0 && changed == nil:
			continue
		case failure != nil:
			return failure
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return errEnded
		case <-changed:
		case <-l.wake():
		case <-ping.C:
			if err := to.ping(ctx); err != nil {
				return &sinkError{err}
			}
		}
	}
}
