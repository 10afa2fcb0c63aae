// SPDX-License-Identifier: Apache-2.0

package discoveryserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Short are times shorter than in production: tests look at the order of what happens.
var Short = abrelease.Times{Acknowledged: time.Second, Ledger: 500 * time.Millisecond, Counts: 2 * time.Second, Sweep: 200 * time.Millisecond}

// Server is a discovery server that does not run yet. What it does by default can be changed.
type Server struct {
	discovery.Setup
	// Releases says how it decides about ABReleases while it leads.
	Releases abrelease.Setup
	// Lead is closed once the server may lead. One that is nil has it follow.
	Lead <-chan struct{}
}

// Address of the server, for proxies.
func (s *Server) Address() string { return s.Listener.Addr().String() }

// New prepares a server that listens at an address, with a certificate. Sequences are kept in a namespace. By
// default it goes by what proxies acknowledge, and follows.
func New(tb testing.TB, config *rest.Config, namespace, address string, certificate *tls.Certificate, log logr.Logger) *Server {
	tb.Helper()
	listener, err := net.Listen("tcp", address) //nolint:noctx // as a server would
	if err != nil {
		tb.Fatal(err)
	}
	window, routers := discovery.NewWindow(), discovery.NewRouters()
	return &Server{
		Setup: discovery.Setup{
			Config: config, Listener: listener, Registry: prometheus.NewRegistry(), Log: log, Clock: clock.RealClock{}, Window: window, Namespace: namespace, Routers: routers,
			Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
			Times:       discovery.Times{Goodbye: 100 * time.Millisecond},
		},
		Releases: abrelease.Setup{Window: window, Routers: routers, Reporters: routers, Namespace: namespace, Clock: clock.RealClock{}, Log: log, Times: Short},
	}
}

// Start runs the server until stop is called, or the test ends. It returns once proxies are served.
func (s *Server) Start(tb testing.TB, patience time.Duration) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done, led := make(chan struct{}), make(chan error, 1), make(chan struct{})
	s.Ready = func() { close(ready) }
	go func() { done <- discovery.Run(ctx, s.Setup) }()
	go func() {
		defer close(led)
		s.lead(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		<-led
	})
	tb.Cleanup(stop)
	poll.Ready(tb, patience, "the discovery server", ready, done)
	return stop
}

// lead decides about ABReleases from when the server may lead.
func (s *Server) lead(ctx context.Context) {
	select {
	case <-s.Lead:
	case <-ctx.Done():
		return
	}
	part := elected.Part{Config: s.Config, Lease: "plumbline-xds", Namespace: s.Namespace, Time: servertime.New(clock.RealClock{}), Log: s.Log}
	part.Again(ctx, clock.RealClock{}, func(mgr ctrl.Manager, _ *rest.Config) error {
		if err := mgr.Add(manager.RunnableFunc(s.Routers.Lead)); err != nil {
			return err //nolint:wrapcheck // Again logs it
		}
		return abrelease.Add(mgr, s.Releases) //nolint:wrapcheck // as above
	})
}
