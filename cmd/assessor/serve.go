// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/serve/door"
)

// serveAPI makes the role that serves the REST API, beside the keeper of its certificate.
func (p *process) serveAPI(opts *assessor.Options, mine *serve.Options, gate *elected.Gate) (func(context.Context) error, error) {
	config, err := p.connect("serve", opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	log := slog.New(logr.ToSlogHandler(p.log))
	keeper, err := p.certificates(config, mine.Certificates(opts.Namespace, certs.Identity(os.Getenv("POD_NAME"))), log)
	if err != nil {
		return nil, err
	}
	sessions, err := mine.Browsers.Sessions(clock.RealClock{})
	if err != nil {
		return nil, err
	}
	server, err := serve.New(serve.Setup{
		Config: config, Namespace: opts.Namespace, Certificate: keeper.GetCertificate, Hosts: mine.ServedHosts(opts.Namespace), Bounds: door.DefaultBounds(), Sessions: sessions,
		Version: version(buildinfo.Read()), DrainDelay: mine.DrainDelay, Registry: p.registry, Log: log, Clock: clock.RealClock{}, Ready: gate.Open,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", mine.Address)
		if err != nil {
			return fmt.Errorf("listening for callers: %w", err)
		}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return keeper.Run(ctx) })
		group.Go(func() error { return server.Run(ctx, listener) })
		return group.Wait()
	}, nil
}

// certificates makes the keeper of the certificate. It has a client of its own: the requests of callers must not cost it
// the lease.
func (p *process) certificates(config *rest.Config, kept certs.Config, log *slog.Logger) (*certs.Keeper, error) {
	own := rest.CopyConfig(config)
	times := certs.NewClock(log)
	own.Wrap(times.Listen)
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the certificate client: %w", err)
	}
	keeper := certs.NewKeeper(client, kept, times, log)
	p.health.Add("certificate", keeper.Loaded)
	return keeper, p.registry.Register(keeper)
}
