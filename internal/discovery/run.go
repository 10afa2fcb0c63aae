// SPDX-License-Identifier: Apache-2.0

package discovery

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
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
)

// Setup is what the discovery server needs from its process.
type Setup struct {
	Config *rest.Config
	// Listener is where proxies connect; it is closed at the end.
	Listener net.Listener
	// Certificate is that of the server, asked for at each connection.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Server      serve.Config
	// Faces are where proxies listen, besides the addresses of Services; Gateways says
	// whose pods are gateways.
	Faces    Faces
	Gateways Account
	// AnyAddress admits a token from any address, for clusters that translate those of pods.
	AnyAddress bool
	Registry   prometheus.Registerer
	Log        logr.Logger
	Clock      clock.WithTicker
	// Ready is told when proxies get what there is; may be nil.
	Ready func()
	// Namespace is Plumbline's own, where sequences are kept.
	Namespace string
	// Window shows the mesh to other parts of the process; may be nil.
	Window *Window
	// Serving is told of the server before any proxy is, for who shows its proxies; may
	// be nil.
	Serving func(*serve.Server)
	// Replicas says how this is one of several; Routers know what proxies of all of them
	// have acknowledged, and may be nil.
	Replicas Replicas
	Routers  *Routers
	// Times are those of production unless a test sets them.
	Times Times
	// Lease is the name of the lease whose renewals show that watches go on; empty if there is
	// none, and then other changes do.
	Lease string
	// Watches are told of what the watches hear; may be nil.
	Watches *Watches
	// Counting is told, likewise, of what takes the proxies' counts; may be nil.
	Counting func(*receive.Server)
}

// Run serves proxies until ctx ends.
func Run(ctx context.Context, setup Setup) error {
	if setup.Config == nil || setup.Listener == nil || setup.Certificate == nil || setup.Registry == nil || setup.Clock == nil {
		return errors.New("serving the mesh: Config, Listener, Certificate, Registry and Clock are needed")
	}
	if err := setup.Replicas.validate(); err != nil {
		return fmt.Errorf("serving the mesh: %w", err)
	}
	setup.Times = setup.Times.withDefaults()
	told, err := newObserver(setup.Registry, setup.Log)
	if err != nil {
		return err
	}
	if setup.Watches, err = setup.watches(); err != nil {
		return err
	}
	if setup.Window == nil {
		setup.Window = NewWindow()
	}
	from, err := newSources(setup.Config, setup.Namespace, setup.Lease, setup.Faces.IPv6, setup.Clock, setup.Log)
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
	from.grants = setup.Faces.Grants
	s.catalog = NewCatalog(s.proofs).WithFaces(setup.Faces)
	s.directory = NewDirectory(s.verifier, from, s.catalog, told.token)
	recorder, err := newRecorder(ctx, setup.Config, setup.Log)
	if err != nil {
		return err
	}
	late := &lateEvents{recorder: recorder, service: from.service, told: telling{now: setup.Clock.Now}}
	told.latest = late.late
	s.directory.Unexported = (&consentEvents{recorder: recorder, told: telling{now: setup.Clock.Now}}).tell
	if err := registerCensus(setup.Registry, from, s.directory); err != nil {
		return err
	}
	if err := s.openCounts(); err != nil {
		return err
	}
	s.directory.Gateways, s.directory.Misread = setup.Gateways, told.misread
	s.directory.AnyAddress, s.directory.AddressWait = setup.AnyAddress, addressWait
	if s.ground, err = newGround(s); err != nil {
		return err
	}
	return s.run(ctx)
}

// openCounts makes what takes the counts of proxies, and the metrics of the port.
func (s *service) openCounts() error {
	counted, err := newCountsObserver(s.Registry)
	if err != nil {
		return err
	}
	s.counts = receive.New(receive.Config{Acknowledged: s.stratumOf}, counting{s.directory}, counted, s.Clock.Now)
	s.port = tlsport.NewMetrics("plumbline_xds")
	if err := s.Registry.Register(s.port); err != nil {
		return fmt.Errorf("registering the metrics of the port: %w", err)
	}
	return nil
}

// watches that are told of, with their metric.
func (s Setup) watches() (*Watches, error) {
	w := s.Watches
	if w == nil {
		w = NewWatches(s.Clock, 0)
	}
	return w, w.register(s.Registry)
}

// service is all of it.
type service struct {
	Setup
	from      *sources
	proofs    *serve.Proofs
	catalog   *Catalog
	directory *Directory
	counts    *receive.Server
	verifier  *identity.Verifier
	lookout   *lookout
	told      *observer
	port      *tlsport.Metrics
	ground    *ground
	memory    ir.Memory
	problems  map[string]bool
}

func (s *service) run(ctx context.Context) error {
	heard := func(h Haste, d dirty) { s.Watches.hear(); s.lookout.changed(h, d) }
	if err := errors.Join(s.from.watch(ctx, heard, s.endings()), s.from.watchLease(ctx, s.Watches.hear)); err != nil {
		return fmt.Errorf("serving the mesh: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.from.cache.Start(ctx) })
	group.Go(func() error { s.from.watchKinds(ctx, s.lookout.changed); return nil })
	group.Go(func() error { return s.look(ctx) })
	group.Go(func() error { return s.serve(ctx) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving the mesh: %w", err)
	}
	return nil
}

// endings ends the streams of pods. A proxy that comes back goes on with its counts.
func (s *service) endings() endings {
	return endings{
		gone: func(uid string) {
			s.directory.Ended(uid)
			s.counts.Ended(uid)
		},
		rescoped: s.directory.Ended,
	}
}

// look publishes what there is, from when the caches are synced.
func (s *service) look(ctx context.Context) error {
	if !s.from.synced(ctx) {
		return nil
	}
	s.Window.open(s.from)
	if s.Routers != nil {
		s.Routers.open(s.ground)
	}
	if err := s.verifier.ReadKeys(ctx); err != nil {
		// Each proxy costs a review until they can be read.
		s.Log.Error(err, "reading the keys of tokens")
	}
	s.lookout.changed(AtOnce, dirty{everything: true})
	ready := s.Ready
	s.lookout.run(ctx, func(d dirty) bool {
		believed := s.publish(ctx, d)
		if believed && ready != nil {
			ready()
			ready = nil
		}
		return believed
	})
	return nil
}

// publish builds anew what is dirty.
func (s *service) publish(ctx context.Context, d dirty) bool {
	names, err := s.from.names(ctx, d, &s.memory)
	if err != nil {
		s.Log.Error(err, "looking at the cluster")
		return false
	}
	names, in, err := s.from.inputs(ctx, names, &s.memory)
	if err != nil {
		s.Log.Error(err, "looking at the cluster")
		return false
	}
	change := s.memory.Rebuild(names, in)
	s.Window.see(change.Parts) // first: an endpoint that is gone costs its variation the share
	believed, err := s.catalog.Publish(change, s.Clock.Now())
	s.tell(change.Fresh, s.catalog.Problems())
	if err != nil {
		s.Log.Error(err, "resources that no proxy would take are left out")
	}
	return believed
}

// tell logs the problems of the mesh that are new, and those of scopes when they are.
func (s *service) tell(fresh, scopes []ir.Problem) {
	now := make(map[string]bool, len(scopes))
	for _, p := range scopes {
		now[p.String()] = true
		if !s.problems[p.String()] {
			fresh = append(fresh, p)
		}
	}
	s.problems = now
	for _, p := range fresh {
		s.Log.Info("the settings of a Service are not followed", "problem", p.String())
	}
}

// ageEvery is how often it is looked how old the watches are.
const ageEvery = time.Second

// age tells the sessions how old the watches are, until ctx ends.
func (s *service) age(ctx context.Context, discovery *serve.Server) {
	ticker := s.Clock.NewTicker(ageEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			discovery.Age(s.Watches.old())
		}
	}
}

func (s *service) serve(ctx context.Context) error {
	server := grpc.NewServer(serve.Options()...)
	discovery := serve.New(s.Server, s.directory, s.proofs, envoyxds.Missing, s.told)
	discovery.Register(server)
	if s.Serving != nil {
		s.Serving(discovery)
	}
	go s.age(ctx, discovery) // until ctx is done
	s.counts.Register(server)
	if s.Counting != nil {
		s.Counting(s.counts)
	}
	if !s.Replicas.alone() {
		guard := newPeerGuard(s.verifier, s.Replicas, s.from, s.ground.told.refuse)
		peers.NewServer(s.ground.index, s.ground.counted, guard, ctx.Done()).Tells(s.Watches.tell).Obeys(s.ground.obey).Counts(s.counts).Register(server)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		explainer{s.ground.index, s.catalog, discovery}.run(ctx, s.Clock) // until ctx is done
		// Proxies are told to go elsewhere; whoever has not gone then is cut off.
		timer := s.Clock.NewTimer(s.Times.Goodbye)
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
	err := server.Serve(listenTLS(s.Listener, portLimits, s.Certificate, s.port, s.Log))
	<-stopped
	return err
}
