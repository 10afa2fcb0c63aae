// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/serve/cluster"
	"github.com/plumbline-dev/plumbline/internal/serve/door"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

const (
	// lastAnswers is how long requests under way may take at the end.
	lastAnswers = 20 * time.Second
	// lastSockets is how long WebSockets may take after that to close: a server of HTTP does not wait for them.
	lastSockets = 3 * time.Second
	// watchAgain is the wait before a kind that could not be watched is tried again.
	watchAgain = time.Second
)

// limits of the port. Callers are strangers: however many connections one address opens, another gets in.
var limits = tlsport.Limits{Connections: 1024, UnderWay: 512, OfCaller: 256, Handshake: 5 * time.Second, Turn: time.Second}

// Setup has the parts of the process that the role uses.
type Setup struct {
	Config *rest.Config
	// Namespace is that of the processes of Plumbline.
	Namespace string
	// Certificate is that of each handshake.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Hosts are those that are served.
	Hosts []string
	// Bounds are of requests at once.
	Bounds door.Bounds
	// Sessions are those of browsers; nil if no browser is served.
	Sessions *Sessions
	// Version of Plumbline is that of the OpenAPI document.
	Version string
	// DrainDelay is how long callers may still connect after the order to stop.
	DrainDelay time.Duration
	Registry   prometheus.Registerer
	Log        *slog.Logger
	Clock      clock.WithTicker
	// Ready is told once the caches are synced; may be nil.
	Ready func()
}

// Server is the role, ready to run.
type Server struct {
	setup Setup
	cache cache.Cache
	api   *httpapi.API
	door  http.Handler
	port  *tlsport.Metrics
}

// Run serves the connections of a listener until ctx ends. It returns an error when the port fails; the process must end
// then.
func (w *Server) Run(ctx context.Context, listener net.Listener) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, serving := errgroup.WithContext(serving)
	group.Go(func() error { return w.cache.Start(serving) })
	group.Go(func() error {
		w.api.Follow(serving)
		return nil
	})
	if s := w.setup.Sessions; s != nil && s.file != nil {
		group.Go(func() error {
			s.file.followFile(serving, w.setup.Clock, w.setup.Log)
			return nil
		})
	}
	group.Go(func() error {
		defer stop()
		return w.serve(ctx, serving, listener)
	})
	return group.Wait()
}

// serve answers from the moment when the caches are synced, until the order to stop and the drain delay.
func (w *Server) serve(ctx, serving context.Context, inner net.Listener) error {
	s := &w.setup
	listener := tlsport.Listen(inner, tlsport.Config{
		Limits: limits, Metrics: w.port, Log: s.Log,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.Certificate},
	})
	syncing, cancel := context.WithCancel(serving)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for _, kind := range cluster.Cached() {
		w.watch(syncing, kind)
	}
	if !w.cache.WaitForCacheSync(syncing) || syncing.Err() != nil { // a cache without kinds is synced
		return listener.Close()
	}
	if s.Ready != nil {
		s.Ready()
	}
	until, end := context.WithCancel(serving)
	defer end()
	defer context.AfterFunc(ctx, func() {
		s.Log.Info("api.draining", "delay", s.DrainDelay.String())
		<-time.After(s.DrainDelay)
		end()
	})()
	// Streams end when no caller can connect here any more, so that they go on at another replica.
	defer context.AfterFunc(until, w.api.End)()
	err := httpapi.Serve(until, listener, w.door, lastAnswers, s.Log)
	w.api.End()
	closing, stop := context.WithTimeout(serving, lastSockets)
	defer stop()
	w.api.Wait(closing)
	return err
}

// watch has the cache watch a kind, or tries until ctx ends. A kind that the API server does not serve is left out: the first
// read after the kind is there has it watched.
func (w *Server) watch(ctx context.Context, kind client.Object) {
	for ctx.Err() == nil {
		_, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil || meta.IsNoMatchError(err) {
			return
		}
		w.setup.Log.Warn("api.cache.failed", "kind", fmt.Sprintf("%T", kind), "error", err.Error())
		timer := w.setup.Clock.NewTimer(watchAgain)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}
