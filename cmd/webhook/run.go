// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// run is the whole program: "install-test" proves an installation, everything else
// is the server.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if answered, err := buildinfo.PrintVersion(args, "webhook", stdout); answered {
		return err
	}
	if len(args) > 0 && args[0] == "install-test" {
		return installTest(ctx, args[1:], stdout, stderr)
	}
	var opts options.Webhook
	fs := flag.NewFlagSet("webhook", flag.ContinueOnError)
	fs.SetOutput(stderr)
	opts.AddFlags(fs)
	if err := options.Parse(fs, args, os.LookupEnv); err != nil {
		return err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return fmt.Errorf("checking options: %w", errs.ToAggregate())
	}
	log, err := telemetry.NewLogger(stderr, opts.LogFormat, opts.LogLevel)
	if err != nil {
		return err
	}
	// The libraries have one logger per process; this is the process.
	logger := logr.FromSlogHandler(log.Handler())
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	details.SetClientLog(log)
	s, err := newServer(&opts, log)
	if err != nil {
		return err
	}
	return s.run(ctx)
}
