// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/historyhttp"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// server holds the parts of a running discovery server.
type server struct {
	opts     *options.XDS
	log      *slog.Logger
	registry *prometheus.Registry
	health   *telemetry.Health
	config   *rest.Config
	keeper   *certs.Keeper
	vouched  atomic.Bool // what is published has vouched for the certificate
	leader   *leader
	synced   elected.Gate
	proxies  *proxieshttp.Handler
	history  *abrelease.History
	window   *discovery.Window
	routers  *discovery.Routers
	times    times
	watches  *discovery.Watches
	// traefik is nil where no Traefik polls.
	traefik *provider.Port
}

func newServer(opts *options.XDS, log *slog.Logger) (*server, error) {
	s := &server{opts: opts, log: log, registry: telemetry.NewRegistry("xds"), health: &telemetry.Health{}}
	s.proxies = proxieshttp.New(certs.Identity(os.Getenv("POD_NAME")), time.Now)
	var err error
	if s.config, err = clientcmd.BuildConfigFromFlags("", opts.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the cluster's address: %w", err)
	}
	s.config.UserAgent = "plumbline-xds"
	if err := telemetry.CountRequests(s.config, s.registry); err != nil {
		return nil, err
	}
	if err := s.addCertificates(); err != nil {
		return nil, err
	}
	if s.times, err = timesOf(os.Getenv); err != nil {
		return nil, err
	}
	s.watches = discovery.NewWatches(clock.RealClock{}, 0)
	s.health.Add("started", s.synced.Check)
	s.health.Add("watches", s.watches.Check)
	s.window, s.routers = discovery.NewWindow(), discovery.NewRouters()
	s.leader, err = newLeader(s.config, opts, s.registry, s.logger())
	if err != nil {
		return nil, err
	}
	if s.traefik, err = s.newTraefikPort(); err != nil {
		return nil, err
	}
	s.leader.traefik = s.traefik
	s.history = abrelease.NewHistory()
	s.leader.window, s.leader.routers, s.leader.times, s.leader.history = s.window, s.routers, s.times.abrelease, s.history
	return s, nil
}

// admin serves the facts about this replica that people ask for.
func (s *server) admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.proxies.Routes())
	mux.Handle(historyhttp.Prefix, historyhttp.Routes(certs.Identity(os.Getenv("POD_NAME")), s.history))
	return mux
}

// logger is for what speaks logr.
func (s *server) logger() logr.Logger { return logr.FromSlogHandler(s.log.Handler()) }

func (s *server) addCertificates() error {
	// Losing the lease because of the mesh's traffic would be absurd: this client
	// has its own rate limit.
	config := rest.CopyConfig(s.config)
	clock := certs.NewClock(s.log)
	config.Wrap(clock.Listen)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the certificate client: %w", err)
	}
	s.keeper = certs.NewKeeper(client, certs.Config{
		Mode:           certs.Mode(s.opts.CertificateMode),
		Namespace:      s.opts.Namespace,
		SecretName:     s.opts.TLSSecret,
		LeaseName:      s.opts.CertificateLeaseName,
		ConfigMapName:  inject.CAConfigMap,
		DeploymentName: s.opts.DeploymentName,
		FieldManager:   "plumbline-xds",
		Names:          certs.ServiceNames(s.opts.ServiceName, s.opts.Namespace, options.SplitList(s.opts.ServerNames)),
		Settle:         s.opts.CertificateSettle,
		Identity:       certs.Identity(os.Getenv("POD_NAME")),
	}, clock, s.log)
	s.health.Add("certificate", s.trusted)
	return s.registry.Register(s.keeper)
}

// trusted says why no proxy can connect: nothing that it could trust was published
// yet. What becomes of that later on takes no replica away from proxies that have it.
func (s *server) trusted() error {
	if s.vouched.Load() {
		return s.keeper.Loaded()
	}
	err := s.keeper.Ready()
	s.vouched.Store(err == nil)
	return err
}

// errDraining is what readiness says after the order to stop.
var errDraining = errors.New("draining")

// run works until ctx ends, and then a while longer: what one replica does for all
// ends at once, so that another one takes over, and readiness fails; proxies are
// served for the drain delay, and then told to go elsewhere.
func (s *server) run(ctx context.Context) error {
	faces, gateways, err := facesOf(s.opts)
	if err != nil {
		return err
	}
	replicas, err := replicasOf(s.opts, s.keeper)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Address)
	if err != nil {
		return fmt.Errorf("listening for proxies: %w", err)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		return telemetry.Serve(serving, s.opts.MetricsAddress, telemetry.MetricsHandler(s.registry))
	})
	group.Go(func() error {
		return telemetry.Serve(serving, s.opts.HealthAddress, s.health.Handler())
	})
	group.Go(func() error { return telemetry.Serve(serving, s.opts.AdminAddress, s.admin()) })
	group.Go(func() error { return s.serveTraefiks(serving) })
	group.Go(func() error { return s.keeper.Run(working) })
	group.Go(func() error { s.leader.run(working); return nil })
	group.Go(func() error {
		return discovery.Run(serving, discovery.Setup{
			Faces: faces, Gateways: gateways, AnyAddress: !s.opts.VerifyProxyAddress, Namespace: s.opts.Namespace, Window: s.window, Routers: s.routers, Replicas: replicas,
			Config: s.config, Listener: listener, Certificate: s.keeper.GetCertificate,
			Registry: s.registry, Log: s.logger(), Clock: clock.RealClock{}, Ready: s.synced.Open,
			Serving: func(d *serve.Server) { s.proxies.Show(d) }, Times: s.times.mesh,
			Lease: s.opts.LeaseName, Watches: s.watches,
		})
	})
	group.Go(func() error {
		<-working.Done()
		s.drain(ctx)
		stop()
		return nil
	})
	return group.Wait()
}

// drain waits while proxies learn to call another replica. When a part failed, and
// ctx was not the reason, there is nothing to wait for.
func (s *server) drain(ctx context.Context) {
	s.health.Add("draining", func() error { return errDraining })
	if ctx.Err() == nil || s.keeper.Loaded() != nil || s.synced.Check() != nil {
		return // Nobody is served.
	}
	s.log.Info("xds.draining", "delay", s.opts.DrainDelay.String())
	<-time.After(s.opts.DrainDelay)
}
