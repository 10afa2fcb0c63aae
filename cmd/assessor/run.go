// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plumbline-dev/plumbline/internal/controller/assess"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// run is the process without its exit code. Logs go to stderr, so that stdout
// stays for what was asked for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var opts assess.Options
	fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
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
	return serve(ctx, &opts, stderr)
}

// serve runs the assessor beside its metrics and health servers; the end of one
// is the end of all.
func serve(ctx context.Context, opts *assess.Options, stderr io.Writer) error {
	logger, err := telemetry.NewLogger(stderr, opts.LogFormat, opts.LogLevel)
	if err != nil {
		return fmt.Errorf("making the logger: %w", err)
	}
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	setup, err := newSetup(opts, log)
	if err != nil {
		return err
	}
	registry := telemetry.NewRegistry("assessor")
	setup.Registry = registry
	var gate assess.Gate
	var health telemetry.Health
	health.Add("caches", gate.Check)
	setup.Ready = gate.Open
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return telemetry.Serve(ctx, opts.MetricsAddress, telemetry.MetricsHandler(registry)) })
	group.Go(func() error { return telemetry.Serve(ctx, opts.HealthAddress, health.Handler()) })
	group.Go(func() error { return assess.Run(ctx, setup) })
	return group.Wait()
}

func newSetup(opts *assess.Options, log logr.Logger) (assess.Setup, error) {
	config, err := clientcmd.BuildConfigFromFlags("", opts.Kubeconfig)
	if err != nil {
		return assess.Setup{}, fmt.Errorf("reading the cluster's address: %w", err)
	}
	config.UserAgent = "plumbline-assessor"
	key, err := opts.DigestKey()
	if err != nil {
		return assess.Setup{}, err
	}
	setup := assess.Setup{
		Config: config, Namespace: opts.Namespace, LeaderElect: opts.LeaderElect,
		Retention: opts.Retention, StampedGroups: options.SplitList(opts.StampedGroups),
		Rules: specguard.Config{Key: key, Grace: opts.RecordGrace, Stamp: stampSource(opts)},
		Log:   log, Clock: clock.RealClock{},
	}
	if opts.Redis.Address != "" {
		client := details.NewClient(details.Config{
			Address: opts.Redis.Address, Username: opts.Redis.Username, PasswordFile: opts.Redis.PasswordFile,
		})
		setup.Records = details.NewReader(client, opts.Redis.KeyPrefix)
	}
	return setup, nil
}

func stampSource(opts *assess.Options) specguard.StampSource {
	if opts.StampWriter {
		return specguard.StampWebhook
	}
	return specguard.StampInProcess
}
