// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// Admission is a proxy whose counts are taken.
type Admission struct {
	Proxy identity.Proxy
	// Gateway says that the proxy serves all namespaces.
	Gateway bool
	// Has says whether the proxy was given a cluster.
	Has func(cluster string) bool
	// Ended is done when its pod is gone or is to come back; nil if that never happens.
	Ended context.Context
	// Leave is called when its stream has ended; may be nil.
	Leave func()
}

// Directory knows the proxies.
type Directory interface {
	// Admit says whose token is in the values of an authorization header. An error with
	// a gRPC status is told to the proxy as it is.
	Admit(ctx context.Context, authorization []string) (Admission, error)
}

// Observer is told what happens, by all streams at once, and each waits for it.
type Observer interface {
	// Streams tells that there is one more, or, with -1, one less.
	Streams(change int)
	// Received tells of a message.
	Received(bytes int)
	// Rejected tells of what was not taken, so many times.
	Rejected(why Reason, times int)
}

// Reason why something was not taken.
type Reason string

// The reasons. Cluster and slots end no stream.
const (
	// ReasonToken: it does not prove a proxy.
	ReasonToken Reason = "token"
	// ReasonUnavailable: it cannot be known now who it is.
	ReasonUnavailable Reason = "unavailable"
	// ReasonStreams: the pod has too many; ReasonProxies: there are too many proxies.
	ReasonStreams Reason = "streams"
	ReasonProxies Reason = "proxies"
	// ReasonMessage: it is malformed or too large.
	ReasonMessage Reason = "message"
	// ReasonCluster: a number of a cluster that the proxy does not have.
	ReasonCluster Reason = "cluster"
	// ReasonRate: the pod sends too much.
	ReasonRate Reason = "rate"
	// ReasonSlots: a slot for which there is no room.
	ReasonSlots Reason = "slots"
)

// Config of a server. A zero field is the default.
type Config struct {
	Signals signals.Config
	// Streams is how many one pod may have at once: 4. The last one may be dead and not
	// yet known to be.
	Streams int
	// Acknowledged says what a proxy has acknowledged of the route of a slot; may be nil.
	Acknowledged func(podUID string, of signals.Slot) signals.Stratum
}

// Server takes what proxies count.
type Server struct {
	config    Config
	directory Directory
	observer  Observer
	now       func() time.Time
	names     names
	flushes   sync.Pool

	mu     sync.Mutex
	counts *signals.Accumulator
	pods   map[string]*pod // by uid
	swept  time.Time
}

// New makes a server; now is its clock.
func New(config Config, directory Directory, observer Observer, now func() time.Time) *Server {
	config.Streams = cmp.Or(config.Streams, 4)
	config.Signals.Epoch = cmp.Or(config.Signals.Epoch, now())
	return &Server{
		config: config, directory: directory, observer: observer, now: now,
		flushes: sync.Pool{New: func() any { return &flush{} }},
		counts:  signals.New(config.Signals), pods: map[string]*pod{},
	}
}

// Register the service with a gRPC server that was made with the options of package
// serve.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.metrics.v3.MetricsService",
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{{StreamName: "StreamMetrics", ClientStreams: true, Handler: s.stream}},
		Metadata:    "envoy/service/metrics/v3/metrics_service.proto",
	}, s)
}

// errGone is why a stream ends with its pod.
var errGone = status.Error(codes.PermissionDenied, "the pod of this proxy is gone, or depends on something else now")

// stream serves one.
func (s *Server) stream(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	in, err := s.directory.Admit(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		s.observer.Rejected(refusal(err), 1)
		return err
	}
	if in.Leave != nil {
		defer in.Leave()
	}
	if why, err := s.open(in); err != nil {
		s.observer.Rejected(why, 1)
		return err
	}
	defer s.close(in.Proxy.PodUID)
	stop, err := serve.EndWith(ctx, in.Ended, errGone)
	if err != nil {
		return err
	}
	defer stop()
	err = s.receive(stream, in)
	if in.Ended != nil && in.Ended.Err() != nil {
		return errGone // the next stream of the proxy goes on, unless [Server.Ended] says otherwise
	}
	return err
}

func refusal(err error) Reason {
	if code := status.Code(err); code == codes.Unauthenticated || code == codes.PermissionDenied {
		return ReasonToken
	}
	return ReasonUnavailable
}

// receive one message after the other, and take each flush when it is whole: with its last
// message, or with the first one of the next flush.
func (s *Server) receive(stream grpc.ServerStream, in Admission) error {
	m := &message{server: s, has: in.Has}
	var begun *flush // whose other messages are to come
	for {
		if err := stream.RecvMsg(m); err != nil {
			s.finish(in, begun)
			return s.over(stream, err)
		}
		next := m.flush
		m.flush, next.find = nil, nil
		s.received(next)
		if err := s.spend(in, next.bytes); err != nil {
			return err
		}
		if begun != nil && begun.continues(next) {
			begun.join(next)
			s.flushes.Put(next)
		} else {
			s.finish(in, begun)
			begun = next
		}
		if begun.whole() {
			s.finish(in, begun)
			begun = nil
		}
	}
}

// finish takes a flush; nil is none.
func (s *Server) finish(in Admission, f *flush) {
	if f != nil {
		s.take(in.Proxy.PodUID, f)
		s.flushes.Put(f)
	}
}

// over says what a stream ends with. One that breaks tells nobody.
func (s *Server) over(stream grpc.ServerStream, err error) error {
	switch code := status.Code(err); {
	case errors.Is(err, io.EOF):
		return stream.SendMsg(&metricsv3.StreamMetricsResponse{})
	case code == codes.Internal, code == codes.ResourceExhausted: // it cannot be read, or is too large
		s.observer.Rejected(ReasonMessage, 1)
		return err
	}
	return nil
}

// message decodes itself. Between two of them it holds next to nothing.
type message struct {
	server *Server
	has    func(string) bool
	flush  *flush
}

// Decode implements serve.Decoder.
func (m *message) Decode(data []byte) error {
	f, is := m.server.flushes.Get().(*flush)
	if !is {
		f = &flush{}
	}
	f.find = func(cluster []byte) (string, signals.Slot, bool) { return m.server.names.find(cluster, m.has) }
	m.flush = f
	return f.decode(data)
}

// take what a proxy counted.
func (s *Server) take(uid string, f *flush) {
	now := s.now()
	if f.At.IsZero() {
		f.At = now
	}
	if s.config.Acknowledged != nil {
		for i := range f.Slots {
			f.Slots[i].Stratum = s.config.Acknowledged(uid, f.Slots[i].Slot)
		}
	}
	s.mu.Lock()
	refused := s.counts.Report(uid, f.Flush, now)
	s.mu.Unlock()
	if refused > 0 {
		s.observer.Rejected(ReasonSlots, refused)
	}
}

// received tells of a message.
func (s *Server) received(f *flush) {
	s.observer.Received(f.bytes)
	if f.ignored > 0 {
		s.observer.Rejected(ReasonCluster, f.ignored)
	}
}

// Ended tells that a pod is gone: nothing of it is in flight any more.
func (s *Server) Ended(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.End(uid, s.now())
}

// Service says what was counted of one since a time, see [signals.Accumulator.Service].
func (s *Server) Service(namespace, service string, since time.Time) signals.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.Service(namespace, service, since, s.now())
}

// Epoch is when this server began to count.
func (s *Server) Epoch() time.Time { return s.config.Signals.Epoch }

// Cells are those that have closed, after a position and so many at most, see [signals.Log.After].
func (s *Server) Cells(after signals.Position, limit int) (cells []signals.Told, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.Cells(after, limit, s.now())
}
