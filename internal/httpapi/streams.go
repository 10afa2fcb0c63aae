// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

	mu    sync.Mutex
	feeds map[audience]*shared
	open  map[string]int
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
	return &streams{server: s, ended: ended, end: sync.OnceFunc(func() { close(ended) }), feeds: map[audience]*shared{}, open: map[string]int{}}
}

// join returns the feed for an audience, once it has all objects. Each join that succeeds is followed by one leave.
func (s *streams) join(ctx context.Context, of audience) (*shared, error) {
	f, err := s.enter(ctx, of)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-f.loaded:
		err = f.ended()
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the first events: %w", ctx.Err())
	}
	if err != nil {
		s.leave(of, f)
		return nil, err
	}
	return f, nil
}

// enter counts a stream, and starts the feed with the first one. The feed lasts as long as its streams.
func (s *streams) enter(ctx context.Context, of audience) (*shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of.user] >= maxStreams {
		return nil, wire.NewProblem(wire.TooManyRequests, fmt.Sprintf("you have %d streams: end one of them", maxStreams))
	}
	s.open[of.user]++
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

// leave ends the feed with its last stream.
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
	if f.streams--; f.streams > 0 {
		return false
	}
	if s.feeds[of] == f {
		delete(s.feeds, of)
	}
	return true
}

// sink is the connection of a stream. Each of its writes ends within writeWithin.
type sink interface {
	send(ctx context.Context, body []byte, id string) error
	ping(ctx context.Context) error
}

// pump sends events until the stream ends, and returns why.
func (s *streams) pump(ctx context.Context, f *feed, in *subscription, to sink) error {
	at, first := f.subscribe(in.last)
	if err := sendAll(ctx, to, first); err != nil {
		return err
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		news, changed, failure := f.next(&at)
		if err := sendAll(ctx, to, news); err != nil {
			return err
		}
		if len(news) > 0 {
			continue
		}
		if failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return errEnded
		case <-changed:
		case <-ping.C:
			if err := to.ping(ctx); err != nil {
				return err
			}
		}
	}
}
