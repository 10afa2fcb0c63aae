// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// guard lets in who says the word.
type guard string

func (g guard) Admit(_ context.Context, authorization []string) error {
	if len(authorization) != 1 || authorization[0] != "Bearer "+string(g) {
		return status.Error(codes.Unauthenticated, "who is that?")
	}
	return nil
}

// registrar is a service that a replica has.
type registrar interface{ Register(grpc.ServiceRegistrar) }

// replica serves on loopback, and whom its certificate is vouched for by.
func replica(t *testing.T, services ...registrar) (address string, roots *x509.CertPool) {
	t.Helper()
	certificate, authority := envoy.NewServing(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}
	server := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(config)))...)
	for _, s := range services {
		s.Register(server)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return listener.Addr().String(), roots
}

// failures are why streams have ended.
type failures struct {
	mu   sync.Mutex
	last string
}

func (f *failures) told(_ string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err.Error()
}

func (f *failures) says(text string) func() error {
	return func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !strings.Contains(f.last, text) {
			return fmt.Errorf("it ended with %q", f.last)
		}
		return nil
	}
}

// follow a replica until the test ends.
func follow(t *testing.T, address, word, name string, roots *x509.CertPool) (*peers.Mirror, *failures) {
	t.Helper()
	return followAged(t, address, word, name, roots, nil)
}

// followAged follows with watches that are so old.
func followAged(t *testing.T, address, word, name string, roots *x509.CertPool, age func() time.Duration) (*peers.Mirror, *failures) {
	t.Helper()
	return followOrders(t, address, word, name, roots, age, nil, nil)
}

// followOrders follows with orders.
func followOrders(t *testing.T, address, word, name string, roots *x509.CertPool, age func() time.Duration, orders func() []peers.Order, changed func() <-chan struct{}) (*peers.Mirror, *failures) {
	t.Helper()
	m, f := peers.NewMirror(), &failures{}
	follower := peers.Follower{
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}, nil
		},
		Token: func() (string, error) { return word, nil }, Failed: f.told, Age: age, Orders: orders, Changed: changed,
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); follower.Follow(ctx, address, m) }()
	t.Cleanup(func() { stop(); <-done })
	return m, f
}

func nothing() []peers.Count { return nil }

func TestAReplicaHearsWhatAnotherKnows(t *testing.T) {
	x := acknowledged.NewIndex()
	for i := range 5000 { // more than one update can tell
		p := acknowledged.Proxy{UID: fmt.Sprint("uid-", i), Namespace: "shop"}
		x.Opened(p, time.Now())
		x.Happened(p, acked(routeOf("a", 6)))
	}
	counts := func() []peers.Count { return []peers.Count{count("a", 7, 1)} }
	address, roots := replica(t, peers.NewServer(x, counts, guard("friend"), nil))
	m, _ := follow(t, address, "friend", "127.0.0.1", roots)
	sequence := func(uid string, want uint64) func() error {
		return func() error {
			r := m.Records(nil, []string{"a"})[uid]
			if len(r.Routes) != 1 || r.Routes[0].Has.Sequence != want {
				return fmt.Errorf("it knows %+v", r)
			}
			return nil
		}
	}
	poll.Until(t, patience, "all is known", sequence("uid-4999", 6))
	if n := len(m.Records(nil, nil)); n != 5000 || !m.Heard(time.Now()) {
		t.Errorf("%d proxies are known", n)
	}
	x.Happened(acknowledged.Proxy{UID: "uid-17"}, acked(routeOf("a", 7)))
	poll.Until(t, patience, "what is new is known", sequence("uid-17", 7))
	x.Closed(acknowledged.Proxy{UID: "uid-18"}, time.Now())
	poll.True(t, patience, "who left is known", func() bool { return !m.Records(nil, nil)["uid-18"].Left.IsZero() })
	poll.True(t, patience, "what is counted is known", func() bool {
		counted, from := m.Counted("shop", "web", time.Now())
		return counted["a"].InFlight == 0 && len(counted) == 1 && !from.IsZero()
	})
}

func TestWhoMayNotAskIsToldNothing(t *testing.T) {
	address, roots := replica(t, peers.NewServer(acknowledged.NewIndex(), nothing, guard("friend"), nil))
	tests := map[string]struct{ word, name, want string }{
		"another token":               {"foe", "127.0.0.1", "who is that?"},
		"the certificate of somebody": {"friend", "elsewhere.example", "certificate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, f := follow(t, address, tc.word, tc.name, roots)
			poll.Until(t, patience, "it is refused", f.says(tc.want))
			if m.Heard(time.Now()) {
				t.Error("it hears something")
			}
		})
	}
}

// liar says what a test has it say.
type liar func(grpc.ServerStream) error

func (l liar) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "plumbline.xds.v1.Peers", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error { return l(s) }}},
	}, nil)
}

// raw is a message of any bytes.
type raw []byte

func (r raw) Encode() []byte { return r }

func TestAReplicaThatTalksNonsenseIsCutOff(t *testing.T) {
	tests := map[string]struct {
		says liar
		want string
	}{
		"no message": {
			func(s grpc.ServerStream) error { return s.SendMsg(raw{0xff, 0xff}) },
			"malformed",
		},
		"out of turn": {
			func(s grpc.ServerStream) error { return s.SendMsg(&peers.Update{Number: 2}) },
			"update 2 follows 0",
		},
		"without an end": {
			func(s grpc.ServerStream) error {
				for n := uint64(1); ; n++ {
					u := &peers.Update{Number: n}
					for i := range 1000 {
						u.Changes = append(u.Changes, acknowledged.Change{Proxy: acknowledged.Proxy{UID: fmt.Sprint(n, "-", i)}, Connected: time.Now()})
					}
					if err := s.SendMsg(u); err != nil {
						return err
					}
				}
			},
			"more than 50000 proxies",
		},
		"too much at once": {
			func(s grpc.ServerStream) error { return s.SendMsg(raw(make([]byte, 5<<20))) },
			"larger than max",
		},
		"nothing": {
			func(s grpc.ServerStream) error { <-s.Context().Done(); return nil },
			"has not reported for 6s",
		},
		"that it has had enough": {
			func(grpc.ServerStream) error { return errors.New("no more") },
			"no more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, roots := replica(t, tc.says)
			m, f := follow(t, address, "friend", "127.0.0.1", roots)
			poll.Until(t, patience, "it is cut off", f.says(tc.want))
			if m.Heard(time.Now()) {
				t.Error("it is heard")
			}
		})
	}
}

func TestAReplicaThatEndsSaysSo(t *testing.T) {
	ending := make(chan struct{})
	address, roots := replica(t, peers.NewServer(acknowledged.NewIndex(), nothing, guard("friend"), ending))
	m, f := follow(t, address, "friend", "127.0.0.1", roots)
	poll.True(t, patience, "it is heard", func() bool { return m.Heard(time.Now()) })
	close(ending)
	poll.Until(t, patience, "it ends", f.says("this replica ends"))
}

func TestNotTooManyAsk(t *testing.T) {
	address, roots := replica(t, peers.NewServer(acknowledged.NewIndex(), nothing, guard("friend"), nil))
	for range 8 {
		m, _ := follow(t, address, "friend", "127.0.0.1", roots)
		poll.True(t, patience, "it is heard", func() bool { return m.Heard(time.Now()) })
	}
	_, f := follow(t, address, "friend", "127.0.0.1", roots)
	poll.Until(t, patience, "it is one too many", f.says("8 replicas ask already"))
}

var _ serve.Encoder = (*peers.Update)(nil)
var _ serve.Decoder = (*peers.Update)(nil)
