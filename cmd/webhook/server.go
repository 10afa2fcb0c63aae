// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/admit"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	injection "github.com/plumbline-dev/plumbline/pkg/traffic/inject/admission"
)

// server holds the parts of a running webhook.
type server struct {
	opts      *options.Webhook
	log       *slog.Logger
	registry  *prometheus.Registry
	health    *telemetry.Health
	keeper    *certs.Keeper
	guards    *admit.Guards
	redis     redis.UniversalClient // nil without Redis
	writer    *details.Writer
	injector  *injection.Injector // nil: no pod gets a proxy
	admission *admission.Server
}

// errDraining is what readiness says after the order to stop.
var errDraining = errors.New("draining")

func newServer(opts *options.Webhook, log *slog.Logger) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", opts.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the client configuration: %w", err)
	}
	s := &server{opts: opts, log: log, registry: telemetry.NewRegistry("webhook"), health: &telemetry.Health{}}
	if err := s.addCertificates(config); err != nil {
		return nil, err
	}
	if err := s.addGuards(config); err != nil {
		return nil, err
	}
	s.addDetails()
	if err := s.addInjection(config); err != nil {
		return nil, err
	}
	if err := s.addAdmission(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *server) addCertificates(config *rest.Config) error {
	// Losing the lease because of reviews' or guards' traffic would be absurd:
	// this client has its own rate limit.
	config = rest.CopyConfig(config)
	clock := certs.NewClock(s.log)
	config.Wrap(clock.Listen)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the certificate client: %w", err)
	}
	s.keeper = certs.NewKeeper(client, certs.Config{
		Mode:              certs.Mode(s.opts.CertificateMode),
		Namespace:         s.opts.Namespace,
		SecretName:        s.opts.TLSSecret,
		LeaseName:         s.opts.LeaseName,
		ConfigurationName: s.opts.WebhookConfiguration,
		InjectionName:     s.opts.InjectionConfiguration,
		DeploymentName:    s.opts.DeploymentName,
		FieldManager:      "plumbline-webhook",
		Names:             certs.ServiceNames(s.opts.ServiceName, s.opts.Namespace, options.SplitList(s.opts.ServerNames)),
		Settle:            s.opts.CertificateSettle,
		Identity:          certs.Identity(os.Getenv("POD_NAME")),
	}, clock, s.log)
	s.health.Add("certificate", s.keeper.Ready)
	return s.registry.Register(s.keeper)
}

func (s *server) addGuards(config *rest.Config) error {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the guard client: %w", err)
	}
	mapper, err := kube.NewMapperFor(config, httpClient)
	if err != nil {
		return fmt.Errorf("making the REST mapper: %w", err)
	}
	s.guards, err = admit.NewGuards(config, admit.GuardsConfig{
		ExcludedNamespaces: specguard.ExcludedNamespaces(s.opts.Namespace),
		System:             specguard.System{Executor: s.opts.ExecutorUser},
		Mapper:             mapper,
		Log:                s.log,
	})
	if err != nil {
		return err
	}
	s.health.Add("guards", s.guards.Ready)
	return s.registry.Register(s.guards)
}

func (s *server) addDetails() {
	if s.opts.Redis.Address != "" {
		s.redis = details.NewClient(s.opts.Redis.Details())
	}
	s.writer = details.NewWriter(s.redis, s.opts.Redis.KeyPrefix, details.DefaultDepth, s.log)
	s.registry.MustRegister(s.writer)
}

func (s *server) addAdmission() error {
	handlers := admission.HandlerConfig{Metrics: admission.NewMetrics(), Log: s.log, Limits: admission.NewLimits(s.opts.MaxConcurrent)}
	config := admission.ServerConfig{
		Port:           s.opts.Port,
		GetCertificate: s.keeper.GetCertificate,
		ConnectionAge:  s.opts.ConnectionAge,
		Handshakes:     s.opts.MaxHandshakes,
		Metrics:        handlers.Metrics,
		Log:            s.log,
	}
	s.registry.MustRegister(handlers.Metrics)
	if s.opts.ClientCAFile != "" {
		raw, err := os.ReadFile(s.opts.ClientCAFile)
		if err != nil {
			return fmt.Errorf("reading the client CA: %w", err)
		}
		if config.ClientCAs, err = admission.ParseClientCAs(raw); err != nil {
			return err
		}
		handlers.Authenticated = admission.AuthenticatedAs(s.opts.ClientName)
	}
	reviewer := &admit.Reviewer{
		Snapshot:      s.guards.Snapshot,
		Recorder:      s.writer,
		Now:           time.Now,
		StampWriter:   s.opts.StampWriter,
		StampedGroups: options.SplitList(s.opts.StampedGroups),
	}
	served := map[string]http.Handler{
		admission.MutatePath:   admission.NewHandler("mutate", reviewer.Mutate, handlers),
		admission.ValidatePath: admission.NewHandler("validate", reviewer.Validate, handlers),
	}
	if s.injector != nil {
		served[admission.InjectPath] = admission.NewFailClosed("inject", s.injector.Review, handlers)
	}
	s.admission = admission.NewServer(config, served)
	return nil
}

// run works until ctx ends, and then a while longer, in this order: certificates
// are no longer written and readiness fails at once, reviews are answered for
// the drain delay with the last words "Connection: close", then the server stops
// listening, and last what waits for Redis is written.
func (s *server) run(ctx context.Context) error {
	defer s.closeRedis()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()

	recorder := make(chan error, 1)
	go func() { recorder <- s.writer.Run(recording) }()

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.keeper.Run(groupCtx) })
	group.Go(func() error { return s.guards.Run(serving) })
	group.Go(func() error {
		return telemetry.Serve(serving, s.opts.MetricsAddress, telemetry.MetricsHandler(s.registry))
	})
	group.Go(func() error { return telemetry.Serve(serving, s.opts.HealthAddress, s.health.Handler()) })
	group.Go(func() error { return s.admission.Run(serving) })
	group.Go(func() error {
		<-groupCtx.Done()
		s.drain(ctx)
		stopServing()
		return nil
	})
	err := group.Wait()
	stopRecording()
	return errors.Join(err, <-recorder)
}

// drain waits while the API server learns to call another replica. When a part
// failed, and ctx was not the reason, there is nothing to wait for.
func (s *server) drain(ctx context.Context) {
	s.health.Add("draining", func() error { return errDraining })
	s.admission.Drain()
	if ctx.Err() == nil {
		return
	}
	s.log.Info("webhook.draining", "delay", s.opts.DrainDelay.String())
	<-time.After(s.opts.DrainDelay)
}

func (s *server) closeRedis() {
	if s.redis == nil {
		return
	}
	if err := s.redis.Close(); err != nil {
		s.log.Warn("redis.close.failed", "error", err.Error())
	}
}
