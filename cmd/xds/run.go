// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
)

// run is the process without its exit code. Logs go to stderr, so that stdout
// stays for what was asked for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if answered, err := buildinfo.PrintVersion(args, "xds", stdout); answered {
		return err
	}
	var opts options.XDS
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
	setLogger(logger)
	s, err := newServer(&opts, logger)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// setLogger: the libraries have one logger per process; this is the process.
func setLogger(logger *slog.Logger) {
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}
