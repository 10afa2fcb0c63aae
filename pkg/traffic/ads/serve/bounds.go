// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
)

// Bound is what a stream ended at.
type Bound string

// The bounds of one pod.
const (
	// BoundStreams is about streams at once, BoundRequests about requests per second.
	BoundStreams  Bound = "streams"
	BoundRequests Bound = "requests"
	// BoundNames is about names of a stream that are not there, and BoundPodNames about those of
	// all streams of a pod.
	BoundNames    Bound = "names"
	BoundPodNames Bound = "pod_names"
)

// Bounds lists all of them.
func Bounds() []Bound { return []Bound{BoundStreams, BoundRequests, BoundNames, BoundPodNames} }

// boundError is why a stream ends at a bound. The proxy is told the text.
type boundError struct {
	bound Bound
	text  string
}

func (e *boundError) Error() string { return e.text }

// GRPCStatus gives gRPC the status that the proxy gets.
func (e *boundError) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, e.text) }

func exceeds(b Bound, format string, values ...any) error {
	return &boundError{b, fmt.Sprintf(format, values...)}
}

// refuse counts a stream that is refused.
func (s *Server) refuse(err error) {
	var at Bound
	if b := (*boundError)(nil); errors.As(err, &b) {
		at = b.bound
	}
	s.observer.Refused(status.Code(err), at)
}

// pod is what the streams of one pod have in common. It outlives them until its bucket is full
// again, so that a new stream gains nothing.
type pod struct {
	sessions []*session // guarded by the server

	mu     sync.Mutex
	bucket tokens.Bucket
	// names are those that the streams keep on top of those that there are.
	names int
}

// spend takes the tokens of a request or a stream, and says whether there were enough.
func (p *pod) spend(r tokens.Rate, bytes int, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.bucket.Spend(r, tokens.Of(bytes), now) {
		return exceeds(BoundRequests, "the pod sends more than %g requests a second, after %g at once: want fewer", r.PerSecond, r.Burst)
	}
	return nil
}

// perChange is how many tokens a pod gets for a cluster or a listener that changes. An Envoy then
// asks for the endpoints, or for the route, or leaves these.
const perChange = 4

// earn gives back tokens for names whose changes have an Envoy send requests.
func (p *pod) earn(r tokens.Rate, changed []ads.Key, now time.Time) {
	n := 0
	for _, k := range changed {
		if k.Type == ads.Cluster || k.Type == ads.Listener {
			n++
		}
	}
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bucket.Earn(r, perChange*float64(n), now)
}

// keep notes that a stream keeps so many more names, or fewer.
func (p *pod) keep(c *Config, change int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names += change
	if change > 0 && p.names > c.PodNames {
		return exceeds(BoundPodNames, "the streams of the pod ask for %d names that are not there, want at most %d", p.names, c.PodNames)
	}
	return nil
}

// rested says that the pod has no stream, and its bucket is full.
func (p *pod) rested(r tokens.Rate, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions) == 0 && p.bucket.Full(r, now)
}

// add notes a stream, unless its pod has too many.
func (s *Server) add(own *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	p := s.pods[own.proxy.PodUID]
	if p == nil {
		p = &pod{bucket: tokens.NewBucket(s.config.Requests, now)}
		s.pods[own.proxy.PodUID] = p
	}
	if len(p.sessions) >= s.config.Streams {
		return exceeds(BoundStreams, "the pod has %d streams already", s.config.Streams)
	}
	if err := p.spend(s.config.Requests, 0, now); err != nil {
		return err
	}
	own.pod = p
	p.sessions = append(p.sessions, own)
	return nil
}

func (s *Server) remove(own *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := own.pod
	p.sessions = slices.DeleteFunc(p.sessions, func(o *session) bool { return o == own })
	_ = p.keep(&s.config, -own.names) // fewer are never too many
	s.sweep(time.Now())
}

// sweepEvery so often pods that have rested are forgotten.
const sweepEvery = 10 * time.Second

func (s *Server) sweep(now time.Time) {
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for uid, p := range s.pods {
		if p.rested(s.config.Requests, now) {
			delete(s.pods, uid)
		}
	}
}
