// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// session is one stream of one proxy.
type session struct {
	server *Server
	proxy  identity.Proxy
	pod    *pod
	names  int // that the pod keeps for this stream
	group  *Group
	ended  <-chan struct{}
	// unserved is asked by whoever asks for proxies, and not by the session.
	unserved func() []string
	leave    func()
	stream   grpc.ServerStream

	requests chan *request
	failed   chan error // why no more requests come
	asked    chan question
	// sending is the response that the proxy has not read yet.
	sending atomic.Pointer[ads.Send]

	// started makes room for another proxy that starts, which late does at the latest;
	// nil for one that came back.
	started func()
	late    *time.Timer

	since  time.Time
	node   atomic.Pointer[node]
	decide *ads.Stream
	at     *revision
	aged   *ageing
}

// errGone is why a stream ends with its pod.
var errGone = status.Error(codes.PermissionDenied, "the pod of this proxy is gone, or depends on something else now")

// run serves the stream until it ends.
func (s *session) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.read(ctx) // ends when the stream does, which is when this has returned

	first, err := s.first(ctx)
	if s.started != nil {
		defer s.started()
		defer s.late.Stop()
	}
	if first == nil || err != nil {
		return err
	}
	s.at = s.group.now()
	s.decide = ads.NewStream(s.server.config.Stream, s.server.proofs, s.server.missing, s.at.view)
	s.aged = s.server.aged.Load()
	s.decide.Age(time.Now(), s.aged.old) // nothing is known of the proxy yet
	if err := s.receive(first); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if s.started != nil && s.decide.Settled() {
			s.started()
		}
		s.arm(timer)
		if more, err := s.step(ctx, timer.C); !more {
			return err
		}
	}
}

// left tells the directory that the stream has ended.
func (s *session) left() {
	if s.leave != nil {
		s.leave()
	}
}

// step does what comes next; false when the stream ends.
func (s *session) step(ctx context.Context, tick <-chan time.Time) (bool, error) {
	select {
	case r := <-s.requests:
		err := s.receive(r)
		return err == nil, err
	case <-s.at.next:
		now, changed := s.group.since(s.at)
		s.at = now
		s.pod.earn(s.server.config.Requests, changed, time.Now())
		err := s.carry(s.decide.Publish(time.Now(), now.view, changed))
		return err == nil, err
	case <-s.aged.changed:
		s.aged = s.server.aged.Load()
		err := s.carry(s.decide.Age(time.Now(), s.aged.old))
		return err == nil, err
	case <-tick:
		err := s.carry(s.decide.Tick(time.Now()))
		return err == nil, err
	case q := <-s.asked:
		q.answer <- s.describe(q.Query)
		return true, nil
	case err := <-s.failed:
		return false, err
	case <-s.ended:
		return false, errGone
	case <-ctx.Done():
		return false, s.over()
	}
}

// read hands on one request after the other.
func (s *session) read(ctx context.Context) {
	for {
		r := &request{}
		if err := s.stream.RecvMsg(r); err != nil {
			s.failed <- readError(err)
			return
		}
		select {
		case s.requests <- r:
		case <-ctx.Done():
			s.failed <- nil
			return
		}
	}
}

// over is why a stream has ended: of a message that cannot be read gRPC tells the proxy,
// and ends the stream, before it tells us.
func (s *session) over() error { return <-s.failed }

// readError is nil when the proxy has ended the stream.
func readError(err error) error {
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled {
		return nil
	}
	return err
}

// refuses says that a stream ends for what the proxy has sent: a request that is too
// long or that nobody can read, of an Envoy that is too old, for what is not served. Of
// a connection that broke, and of a pod that is gone, nobody has to be told.
func refuses(err error) bool {
	return slices.Contains([]codes.Code{codes.FailedPrecondition, codes.InvalidArgument, codes.ResourceExhausted, codes.Internal}, status.Code(err))
}

// first waits for the first request, which says whether the proxy starts.
func (s *session) first(ctx context.Context) (*request, error) {
	select {
	case r := <-s.requests:
		known := r.node // and not what was asked for with it
		s.node.Store(&known)
		if err := s.served(r.node); err != nil {
			return nil, err
		}
		if len(r.Initial) > 0 {
			return r, nil
		}
		return r, s.awaitStart(ctx)
	case err := <-s.failed:
		return nil, err
	case <-s.ended:
		return nil, errGone
	case <-ctx.Done():
		return nil, s.over()
	}
}

// awaitStart waits until there is room for another proxy that starts. Waiting costs no
// more than being connected, and a refusal would have it send everything again.
func (s *session) awaitStart(ctx context.Context) error {
	select {
	case s.server.starting <- struct{}{}:
		var once sync.Once
		s.started = func() { once.Do(func() { <-s.server.starting }) }
		s.late = time.AfterFunc(s.server.config.StartTime, s.started)
		return nil
	case err := <-s.failed:
		return err
	case <-s.ended:
		return errGone
	case <-ctx.Done():
		return cmp.Or(s.over(), context.Cause(ctx))
	}
}

// served says that an Envoy is new enough.
func (s *session) served(n node) error {
	oldest := s.server.config.Oldest
	if n.version[0] > oldest[0] || n.version[0] == oldest[0] && n.version[1] >= oldest[1] {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "Envoy %d.%d.%d is not served: want %d.%d or later",
		n.version[0], n.version[1], n.version[2], oldest[0], oldest[1])
}

// receive takes a request.
func (s *session) receive(r *request) error {
	kind, served := ads.TypeOf(r.url)
	if !served {
		return status.Errorf(codes.InvalidArgument, "%q is not served", r.url)
	}
	r.Type = kind
	now := time.Now()
	if !s.decide.Answers(r.Request) {
		if err := s.pod.spend(s.server.config.Requests, r.bytes, now); err != nil {
			return err
		}
	}
	effects := s.decide.Receive(now, r.Request)
	if err := s.boundNames(); err != nil {
		return err
	}
	return s.carry(effects)
}

// boundNames says that the stream, or its pod, keeps too many names.
func (s *session) boundNames() error {
	n, most := s.decide.Unknown(), s.server.config.Names
	if n > most {
		if strange := s.decide.Strange(); strange > most {
			return exceeds(BoundNames, "the proxy asks for %d names that are not there, want at most %d", strange, most)
		}
	}
	change := n - s.names
	s.names = n
	return s.pod.keep(&s.server.config, change)
}

// carry out what was decided. A response that cannot be sent ends the stream; until
// it is sent nothing else is decided.
func (s *session) carry(effects []ads.Effect) error {
	for _, e := range effects {
		send, responds := e.(ads.Send)
		if !responds {
			s.server.observer.Happened(s.proxy, e)
			continue
		}
		s.sending.Store(&send)
		err := s.stream.SendMsg(&send)
		s.sending.Store(nil)
		if err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		s.server.observer.Sent(s.proxy, &send, size(&send))
	}
	return nil
}

func size(send *ads.Send) (n int) {
	for _, r := range send.Resources {
		n += len(r.Body)
	}
	return n
}

// arm sets the timer for when the stream has something to do.
func (s *session) arm(timer *time.Timer) {
	next := s.decide.Next()
	if next.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(max(0, time.Until(next)))
}
