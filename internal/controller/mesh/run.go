// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Setup is what the discovery server needs from its process.
type Setup struct {
	Config *rest.Config
	// Listener is where proxies connect; it is closed at the end.
	Listener net.Listener
	// Certificate is that of the server, asked for at each connection.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Server      serve.Config
	Registry    prometheus.Registerer
	Log         logr.Logger
	Clock       clock.WithTicker
	// Ready is told when proxies get what there is; may be nil.
	Ready func()
}

// Run serves proxies until ctx ends.
func Run(ctx context.Context, setup Setup) error {
	if setup.Config == nil || setup.Listener == nil || setup.Certificate == nil || setup.Registry == nil || setup.Clock == nil {
		return errors.New("serving the mesh: Config, Listener, Certificate, Registry and Clock are needed")
	}
	told, err := newObserver(setup.Registry, setup.Log)
	if err != nil {
		return err
	}
	from, err := newSources(setup.Config)
	if err != nil {
		return err
	}
	api, err := identity.NewAPI(setup.Config)
	if err != nil {
		return err
	}
	s := &service{
		Setup: setup, from: from, proofs: serve.NewProofs(), told: told, lookout: newLookout(setup.Clock),
		verifier: identity.New(identity.Config{API: api, Pods: podsOf{from}, Now: setup.Clock.Now}),
	}
	s.catalogue = NewCatalogue(s.proofs)
	s.directory = NewDirectory(s.verifier, from, s.catalogue, told.token)
	return s.run(ctx)
}

// service is all of it.
type service struct {
	Setup
	from      *sources
	proofs    *serve.Proofs
	catalogue *Catalogue
	directory *Directory
	verifier  *identity.Verifier
	lookout   *lookout
	told      *observer
	problems  map[string]bool
}

func (s *service) run(ctx context.Context) error {
	if err := s.from.watch(ctx, s.lookout.changed, s.directory.Ended); err != nil {
		return fmt.Errorf("serving the mesh: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.from.cache.Start(ctx) })
	group.Go(func() error { return s.look(ctx) })
	group.Go(func() error { return s.serve(ctx) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving the mesh: %w", err)
	}
	return nil
}

// look publishes what there is, from when the caches are synced.
func (s *service) look(ctx context.Context) error {
	if !s.from.cache.WaitForCacheSync(ctx) {
		return nil
	}
	if err := s.verifier.ReadKeys(ctx); err != nil {
		// Each proxy costs a review until they can be read.
		s.Log.Error(err, "reading the keys of tokens")
	}
	s.lookout.changed(true)
	ready := s.Ready
	s.lookout.run(ctx, func() bool {
		believed := s.publish(ctx)
		if believed && ready != nil {
			ready()
			ready = nil
		}
		return believed
	})
	return nil
}

func (s *service) publish(ctx context.Context) bool {
	in, err := s.from.inputs(ctx)
	if err != nil {
		s.Log.Error(err, "looking at the cluster")
		return false
	}
	mesh := ir.Build(in)
	s.tell(mesh.Problems)
	believed, err := s.catalogue.Publish(mesh, s.Clock.Now())
	if err != nil {
		s.Log.Error(err, "resources that no proxy would take are left out")
	}
	return believed
}

// tell logs each problem when it is new.
func (s *service) tell(problems []ir.Problem) {
	now := make(map[string]bool, len(problems))
	for _, p := range problems {
		now[p.String()] = true
		if !s.problems[p.String()] {
			s.Log.Info("a Service is not as somebody wants it", "problem", p.String())
		}
	}
	s.problems = now
}

// goodbye is how long streams have to end when the process does.
const goodbye = 5 * time.Second

func (s *service) serve(ctx context.Context) error {
	config := &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}
	server := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(config)))...)
	serve.New(s.Server, s.directory, s.proofs, envoyxds.Missing, s.told).Register(server)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		// Proxies are told to go elsewhere; whoever has not gone then is cut off.
		timer := s.Clock.NewTimer(goodbye)
		defer timer.Stop()
		gone := make(chan struct{})
		go func() { defer close(gone); server.GracefulStop() }()
		select {
		case <-gone:
		case <-timer.C():
			server.Stop()
			<-gone
		}
	}()
	err := server.Serve(s.Listener)
	<-stopped
	return err
}
