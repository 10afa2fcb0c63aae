// SPDX-License-Identifier: Apache-2.0

package serve

import (
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

// session is one stream of one proxy. It decides and sends in turns: that of the goroutine of the
// stream, which reads requests, and those of goroutines that wake it, each for as long as that takes.
type session struct {
	server *Server
	proxy  identity.Proxy
	pod    *pod
	names  int // that the pod keeps for this stream
	group  *Group
	ended  context.Context
	// unserved is asked by whoever asks for proxies, and not by the session.
	unserved func() []string
	leave    func()
	stream   grpc.ServerStream

	// turn holds one thing while a goroutine decides, sends or describes; the stream begins with one in it.
	turn chan struct{}
	// woken says that a goroutine waits for its turn to catch up.
	woken atomic.Bool
	// sending is the response that the proxy has not read yet.
	sending atomic.Pointer[ads.Send]

	since time.Time
	node  atomic.Pointer[node]

	// What follows belongs to the turn.

	// over is why nothing is decided any more; io.EOF when the proxy has ended the stream.
	over error
	// started makes room for another proxy that starts, which late does at the latest;
	// nil for one that came back, and for one that has started.
	started func()
	late    *time.Timer
	decide  *ads.Stream
	at      *revision
	old     bool
	timer   *time.Timer
}

func newSession(s *Server, in Admission, stream grpc.ServerStream) *session {
	own := &session{
		server: s, proxy: in.Proxy, group: in.Group, ended: in.Ended, unserved: in.Unserved, leave: in.Leave, stream: stream,
		turn: make(chan struct{}, 1), since: time.Now(),
	}
	own.turn <- struct{}{}
	own.node.Store(&node{})
	return own
}

// errGone is why a stream ends with its pod.
var errGone = status.Error(codes.PermissionDenied, "the pod of this proxy is gone, or depends on something else now")

// run serves the stream until it ends.
func (s *session) run(ctx context.Context) error {
	err := s.begin(ctx)
	s.over = err
	<-s.turn
	for r := (&request{}); err == nil; {
		if err = s.read(r); err == nil {
			err = s.inTurn(func() error { return s.receive(r) })
		}
	}
	return s.end(err)
}

// left tells the directory that the stream has ended.
func (s *session) left() {
	if s.leave != nil {
		s.leave()
	}
}

// inTurn does something unless the stream is over, and then waits for the next thing. An error ends the
// stream.
func (s *session) inTurn(do func() error) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.over == nil {
		if s.over = do(); s.over == nil {
			s.rest()
		}
	}
	return s.over
}

// rest has the session woken when time has something to do.
func (s *session) rest() {
	if s.started != nil && s.decide.Settled() {
		s.hasStarted()
	}
	next := s.decide.Next()
	if next.IsZero() {
		s.timer.Stop()
		return
	}
	s.timer.Reset(max(0, time.Until(next)))
}

// wake has the session catch up, once however often it is woken before that.
func (s *session) wake() {
	if s.woken.CompareAndSwap(false, true) {
		go func() { _ = s.inTurn(s.catchUp) }() // the goroutine of the stream returns the error
	}
}

// catchUp does what has become due since the last turn. A response that cannot be sent ends the stream.
func (s *session) catchUp() error {
	s.woken.Store(false) // what wakes the session from now on may come after what is looked at
	now := time.Now()
	if old := s.server.old.Load(); old != s.old {
		s.old = old
		if err := s.carry(s.decide.Age(now, old)); err != nil {
			return err
		}
	}
	if current, changed := s.group.since(s.at); current != s.at {
		s.at = current
		s.pod.earn(s.server.config.Requests, changed, now)
		if err := s.carry(s.decide.Publish(now, current.view, changed)); err != nil {
			return err
		}
	}
	if next := s.decide.Next(); !next.IsZero() && !now.Before(next) {
		return s.carry(s.decide.Tick(now))
	}
	return nil
}

// end has nothing decided any more, and says why: nil when the proxy has ended the stream.
func (s *session) end(err error) error {
	err = s.inTurn(func() error { return err })
	s.group.leave(s)
	if s.started != nil { // no other goroutine does anything in its turn any more
		s.hasStarted()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	switch {
	case s.ended != nil && s.ended.Err() != nil:
		return errGone
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// read waits for a request; io.EOF says that the proxy has ended the stream. Of a message that cannot be read
// gRPC tells the proxy.
func (s *session) read(r *request) error {
	err := s.stream.RecvMsg(r)
	if status.Code(err) == codes.Canceled {
		return io.EOF
	}
	return err
}

// refuses says that a stream ends for what the proxy has sent: a request that is too
// long or that nobody can read, of an Envoy that is too old, for what is not served. Of
// a connection that broke, and of a pod that is gone, nobody has to be told.
func refuses(err error) bool {
	return slices.Contains([]codes.Code{codes.FailedPrecondition, codes.InvalidArgument, codes.ResourceExhausted, codes.Internal}, status.Code(err))
}

// begin waits for the first request, which says whether the proxy starts, and takes it.
func (s *session) begin(ctx context.Context) error {
	var first request
	if err := s.read(&first); err != nil {
		return err
	}
	known := first.node // and not what was asked for with it
	s.node.Store(&known)
	if err := s.served(first.node); err != nil {
		return err
	}
	if len(first.Initial) == 0 {
		if err := s.awaitStart(ctx); err != nil {
			return err
		}
	}
	s.at = s.group.join(s)
	s.decide = ads.NewStream(s.server.config.Stream, s.server.proofs, s.server.missing, s.at.view)
	s.old = s.server.old.Load()
	s.decide.Age(time.Now(), s.old) // nothing is known of the proxy yet
	s.timer = time.AfterFunc(time.Hour, s.wake)
	if err := s.receive(&first); err != nil {
		return err
	}
	s.rest()
	return nil
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
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hasStarted makes room for another proxy that starts.
func (s *session) hasStarted() {
	s.late.Stop()
	s.started()
	s.started = nil
}

// agents are the kinds of programs whose agents are served, whatever the version of the program is:
// the agent knows what its program can do.
var agents = []string{"haproxy", "nginx"}

// served says that an Envoy is new enough. A proxy of an unknown kind has to be as an Envoy is.
func (s *session) served(n node) error {
	if slices.Contains(agents, n.kind) {
		return nil
	}
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
