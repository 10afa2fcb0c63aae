// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// viewOf a few clusters in a version.
func viewOf(n int) *ads.View {
	var all []*ads.Resource
	for i := range 5 {
		all = append(all, &ads.Resource{Type: ads.Cluster, Name: fmt.Sprint("c", i), Version: ads.Version{Hash: fmt.Sprint(n)}})
	}
	return ads.NewView(all...)
}

// crowded has so many proxies, which acknowledge whatever they are sent.
func crowded(t *testing.T, proxies int) (*Server, *crowd) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &crowd{group: NewGroup(viewOf(0))}
	s := New(Config{Starting: proxies}, c, NewProofs(), nobody, c)
	var ended sync.WaitGroup
	for range proxies {
		o := &obedient{ctx: ctx, requests: make(chan request, 100)} // more than are on the way
		o.requests <- request{url: ads.Cluster.URL(), node: node{id: "x", version: [3]uint64{1, 40, 0}}}
		ended.Go(func() { _ = s.delta(nil, o) })
	}
	t.Cleanup(func() { stop(); ended.Wait() })
	acknowledged(t, s, proxies)
	return s, c
}

// acknowledged waits until all proxies have acknowledged all that there is.
func acknowledged(t *testing.T, s *Server, proxies int) {
	t.Helper()
	poll.Until(t, time.Minute, "all have acknowledged everything", func() error {
		n := 0
		page, _ := s.Page(t.Context(), Query{})
		for i := range page {
			if page[i].Counts[ads.Acknowledged] == 5 {
				n++
			}
		}
		if n != proxies {
			return fmt.Errorf("%d of %d have", n, proxies)
		}
		return nil
	})
}

// The stack of each goroutine is memory of each proxy: two goroutines for one stream waited besides its own.
func TestAStreamThatWaitsHasNoGoroutineButItsOwn(t *testing.T) {
	const proxies = 50
	before := runtime.NumGoroutine()
	s, c := crowded(t, proxies)
	c.group.Publish(viewOf(1))
	acknowledged(t, s, proxies)
	poll.Until(t, time.Minute, "the goroutines that were woken have ended", func() error {
		if n := runtime.NumGoroutine() - before; n > proxies {
			return fmt.Errorf("%d goroutines for %d streams", n, proxies)
		}
		return nil
	})
}

// Views, requests, questions and time come at once; each session has the last view in the end.
func TestSessionsThatAreWokenByEverythingAtOnceHaveTheLastView(t *testing.T) {
	const proxies, last = 20, 200
	s, c := crowded(t, proxies)
	var done sync.WaitGroup
	done.Go(func() {
		for n := range last {
			c.group.Publish(viewOf(n + 1))
		}
	})
	done.Go(func() {
		for n := range last {
			s.Age(n%2 == 0)
		}
	})
	done.Go(func() {
		for range last {
			s.Page(t.Context(), Query{})
		}
	})
	done.Wait()
	acknowledged(t, s, proxies)
	page, _ := s.Page(t.Context(), Query{Details: true})
	for i := range page {
		for _, r := range page[i].Resources {
			if r.Has.Hash != fmt.Sprint(last) {
				t.Fatalf("%s has %s of %s", page[i].Pod, r.Has, r.Name)
			}
		}
	}
}

// deaf is a stream on which nothing can be sent.
type deaf struct{ *obedient }

func (d deaf) SendMsg(any) error { return io.ErrClosedPipe }

func TestAStreamEndsWithWhatCouldNotBeSentToIt(t *testing.T) {
	c := &crowd{group: NewGroup(nil)}
	s := New(Config{}, c, NewProofs(), nobody, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := deaf{&obedient{ctx: ctx, requests: make(chan request, 8)}}
	o.requests <- request{url: ads.Cluster.URL(), node: node{id: "x", version: [3]uint64{1, 40, 0}}}
	ended := make(chan error, 1)
	go func() { ended <- s.delta(nil, o) }()
	poll.Until(t, time.Minute, "the session has begun", func() error {
		if page, _ := s.Page(t.Context(), Query{}); len(page) != 1 || page[0].Waiting {
			return fmt.Errorf("%+v", page)
		}
		return nil
	})
	c.group.Publish(viewOf(1))
	// gRPC ends a stream on which something cannot be sent, and with it what reads.
	poll.Until(t, time.Minute, "the session is over", func() error {
		page, _ := s.chosen(Query{})
		if own := page[0]; !own.isOver() {
			return errors.New("it goes on")
		}
		return nil
	})
	stop()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it ends with %v", err)
	}
}

func (s *session) isOver() bool {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.over != nil
}
