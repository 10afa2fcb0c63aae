// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/plumbline-dev/plumbline/internal/controller/elected"
	"github.com/plumbline-dev/plumbline/internal/controller/mesh"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
)

// run is the process without its exit code. Logs go to stderr, so that stdout
// stays for what was asked for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var opts mesh.Options
	fs := flag.NewFlagSet("xds", flag.ContinueOnError)
	fs.SetOutput(stdout)
	opts.AddFlags(fs)
	switch err := options.Parse(fs, args, os.LookupEnv); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return fmt.Errorf("checking the options: %w", errs.ToAggregate())
	}
	logger, err := telemetry.NewLogger(stderr, opts.LogFormat, opts.LogLevel)
	if err != nil {
		return fmt.Errorf("making the logger: %w", err)
	}
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return serve(ctx, &opts, log)
}

// serve runs the discovery server beside its metrics and health.
func serve(ctx context.Context, opts *mesh.Options, log logr.Logger) error {
	registry := telemetry.NewRegistry("xds")
	config, err := clientcmd.BuildConfigFromFlags("", opts.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the cluster's address: %w", err)
	}
	config.UserAgent = "plumbline-xds"
	if err := telemetry.CountRequests(config, registry); err != nil {
		return err
	}
	certificate, err := certwatcher.New(opts.Certificate(), opts.Key())
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.Address)
	if err != nil {
		return fmt.Errorf("listening for proxies: %w", err)
	}
	var gate elected.Gate
	var health telemetry.Health
	health.Add("started", gate.Check)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return telemetry.Serve(ctx, opts.MetricsAddress, telemetry.MetricsHandler(registry)) })
	group.Go(func() error { return telemetry.Serve(ctx, opts.HealthAddress, health.Handler()) })
	group.Go(func() error { return certificate.Start(ctx) })
	group.Go(func() error {
		return mesh.Run(ctx, mesh.Setup{
			Config: config, Listener: listener, Certificate: certificate.GetCertificate,
			Registry: registry, Log: log, Clock: clock.RealClock{}, Ready: gate.Open,
		})
	})
	return group.Wait()
}
