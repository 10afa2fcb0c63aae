// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
)

// Admission is a proxy that may be served.
type Admission struct {
	Proxy identity.Proxy
	// Gateway says that it serves all namespaces.
	Gateway bool
	// Group is what it may see.
	Group *Group
	// Ended is done when it may no longer be served; nil if that never happens.
	Ended context.Context
	// Leave is called when its stream has ended; may be nil.
	Leave func()
	// Unserved says what the proxy asks for and cannot have; may be nil.
	Unserved func() []string
}

// Directory knows the proxies.
type Directory interface {
	// Admit says whose token is in the values of an authorization header, and what that
	// proxy may see. An error with a gRPC status is told to the proxy as it is.
	Admit(ctx context.Context, authorization []string) (Admission, error)
}

// Observer is told what happens. Its methods are called by all sessions at once, and
// each waits for them.
type Observer interface {
	// Opened and Closed tell of a stream; why is nil when the proxy ended it.
	Opened(identity.Proxy)
	Closed(p identity.Proxy, why error)
	// Refused tells of a stream that was not admitted, or ended for what the proxy sent, and of
	// the bound that it ended at; empty for any other reason.
	Refused(code codes.Code, at Bound)
	// Happened tells of an effect other than a response, Sent of a response and its
	// size in bytes.
	Happened(identity.Proxy, ads.Effect)
	Sent(p identity.Proxy, send *ads.Send, bytes int)
}

// Config of a server. A zero field is the default.
type Config struct {
	Stream ads.Config
	// Starting is how many proxies that have nothing yet are served at once, until they
	// have what there is, or for StartTime: 100, and 10 s. The others wait. Those that
	// come back with what they have cost next to nothing, and are not counted.
	Starting  int
	StartTime time.Duration
	// Names is how many names a proxy may ask for that it was never given and that are not
	// there: 1,000. PodNames is how many the streams of one pod keep on top of those that
	// there are: 10,000.
	Names, PodNames int
	// Requests bounds what a pod may send on all of its streams: 20 a second, and 1,000 at once.
	// An answer to a response is none of these; each 4 KiB of a longer request are one more, and
	// so is each stream. A cluster or a listener that changes gives four back.
	Requests tokens.Rate
	// Streams is how many one pod may have at once: 4. The last one may be dead and not
	// yet known to be.
	Streams int
	// Oldest is the oldest Envoy that is served, major and minor: that of [Oldest].
	Oldest [2]uint64
}

func (c Config) withDefaults() Config {
	c.Starting = cmp.Or(c.Starting, 100)
	c.StartTime = cmp.Or(c.StartTime, 10*time.Second)
	c.Names = cmp.Or(c.Names, 1_000)
	c.PodNames = cmp.Or(c.PodNames, 10_000)
	c.Requests = cmp.Or(c.Requests, tokens.Rate{PerSecond: 20, Burst: 1_000})
	c.Streams = cmp.Or(c.Streams, 4)
	c.Oldest = cmp.Or(c.Oldest, Oldest())
	return c
}

// Oldest is the oldest Envoy that is served: 1.37. Envoy 1.36 does not know the
// matching of routes by cookie, so it refuses the routes of a split by visitor or
// cookie (RouteMatch.cookies, envoy/config/route/v3/route_components.proto).
func Oldest() [2]uint64 { return [2]uint64{1, 37} }

// Server serves the streams of all proxies.
type Server struct {
	config    Config
	directory Directory
	proofs    ads.Proofs
	missing   ads.Missing
	observer  Observer
	starting  chan struct{} // has one for each that starts
	old       atomic.Bool   // whether the views are

	mu    sync.Mutex
	pods  map[string]*pod // by uid
	swept time.Time
}

// New makes a server. missing makes what stands for a resource that is not there.
func New(config Config, directory Directory, proofs ads.Proofs, missing ads.Missing, observer Observer) *Server {
	config = config.withDefaults()
	return &Server{
		config: config, directory: directory, proofs: proofs, missing: missing, observer: observer,
		starting: make(chan struct{}, config.Starting), pods: map[string]*pod{},
	}
}

// Age tells all sessions whether their views are old, see [ads.Stream.Age]. One at a time calls it.
func (s *Server) Age(old bool) {
	if s.old.Swap(old) == old {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.pods {
		for _, own := range of.sessions {
			own.wake()
		}
	}
}

// maxRequest is what a proxy may send at once: a request that names all of 10,000
// resources and their versions has less than one mebibyte.
const maxRequest = 4 << 20

// age is when a connection ends so that proxies spread over the replicas again; gRPC
// adds or takes a tenth by chance. Streams have a moment to end by themselves.
const age, grace = 30 * time.Minute, 5 * time.Second

// handshake is how long a connection may take to begin, which is not short when 10,000
// proxies come back at once, and idle how long it may have no stream: whoever reaches the
// port may connect, and each connection takes memory.
const handshake, idle = 30 * time.Second, time.Minute

// window is how many bytes a proxy may send before it is told that they were read. With a window of
// its own choice gRPC measures each connection: it answers each request, and each message of
// counts, with a PING, which costs more than the request. A request longer than this takes round
// trips.
const window = 64 << 10

// batch is how much of responses goes to TLS at once: what one record has at most. gRPC holds such a
// buffer only while it writes.
const batch = 16 << 10

// Options are what a gRPC server needs to serve 10,000 proxies in little memory: small
// buffers, the codec, and an end for connections that are dead.
func Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.ReadBufferSize(0), // that of TLS does
		grpc.WriteBufferSize(batch),
		grpc.StaticConnWindowSize(window),
		grpc.MaxConcurrentStreams(16), // ADS, metrics, and those that are about to end
		grpc.MaxHeaderListSize(32 << 10),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 30 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: idle, MaxConnectionAge: age, MaxConnectionAgeGrace: grace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
}

// Register the service with a gRPC server that was made with [Options].
func (s *Server) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "DeltaAggregatedResources", ServerStreams: true, ClientStreams: true, Handler: s.delta},
			{StreamName: "StreamAggregatedResources", ServerStreams: true, ClientStreams: true, Handler: s.stateOfTheWorld},
		},
		Metadata: "envoy/service/discovery/v3/ads.proto",
	}, s)
}

// stateOfTheWorld says what to ask for instead.
func (s *Server) stateOfTheWorld(any, grpc.ServerStream) error {
	s.observer.Refused(codes.Unimplemented, "")
	return status.Error(codes.Unimplemented, "state of the world is not served: set api_type: DELTA_GRPC")
}

// delta serves one stream.
func (s *Server) delta(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	in, err := s.directory.Admit(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		s.refuse(err)
		return err
	}
	own := newSession(s, in, stream)
	defer own.left()
	if err := s.add(own); err != nil {
		s.refuse(err)
		return err
	}
	defer s.remove(own)
	stop, err := EndWith(ctx, in.Ended, errGone)
	if err != nil {
		return err
	}
	defer stop()
	s.observer.Opened(own.proxy)
	err = own.run(ctx)
	if refuses(err) {
		s.refuse(err)
	}
	s.observer.Closed(own.proxy, err)
	return err
}

// EndWith ends a stream of gRPC with a status as soon as another context is done, which may be nil: also
// one whose handler waits for a request, or for a proxy that does not read. stop lets go of that context.
// A stream that cannot be ended from outside is an error, since it would outlive its pod.
func EndWith(stream, ended context.Context, why error) (stop func(), err error) {
	if ended == nil {
		return func() {}, nil
	}
	// A handler that returns would do the same, and would have to wait for it, with a goroutine of its own.
	end, is := grpc.ServerTransportStreamFromContext(stream).(interface{ WriteStatus(s *status.Status) error })
	if !is {
		return nil, status.Error(codes.Internal, "the transport cannot end a stream")
	}
	release := context.AfterFunc(ended, func() { _ = end.WriteStatus(status.Convert(why)) }) // or the connection is gone
	return func() { release() }, nil
}
