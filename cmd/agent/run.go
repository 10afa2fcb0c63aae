// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/internal/agent"
	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
)

// run is the process without its exit code. Logs go to stderr, beside those of the program.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	if answered, err := buildinfo.PrintVersion(args, "agent", stdout); answered {
		return err //nolint:wrapcheck // it says what it writes
	}
	s, err := parse(args, lookup, stdout)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(stderr, s.logFormat, s.logLevel)
	if err != nil {
		return fmt.Errorf("making the logger: %w", err)
	}
	p, err := newProcess(&s, log)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// process has the parts of an agent that runs.
type process struct {
	settings *settings
	log      *slog.Logger
	registry *prometheus.Registry
	health   *telemetry.Health
	program  *program
	agent    *agent.Agent
}

func newProcess(s *settings, log *slog.Logger) (*process, error) {
	p := &process{settings: s, log: log, registry: telemetry.NewRegistry("agent"), health: &telemetry.Health{}}
	metrics, err := agent.NewMetrics(p.registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if err := os.MkdirAll(s.folder, 0o755); err != nil { //nolint:gosec // the program may be another user
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	if p.program, err = makers[s.connector](s); err != nil {
		return nil, err
	}
	config := agent.Config{
		Server: agent.Server{Addresses: s.addresses(), Name: s.serverName, TokenFile: s.token, CAFile: s.authority, Node: s.node},
		Store:  agent.Store{Path: filepath.Join(s.folder, "resources")}, Flush: s.flush, Log: log,
	}
	if p.program.child != nil {
		config.Start = p.program.child.Start
	}
	p.agent = agent.New(config, p.program.connector, metrics)
	p.health.Add("program", p.agent.Ready)
	return p, nil
}

// errDraining is what readiness says after the order to stop.
var errDraining = errors.New("draining")

// run works until ctx ends, and then for the drain delay, in which the program answers requests.
func (p *process) run(ctx context.Context) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, p.program.passed...)
	defer signal.Stop(signals)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, working := errgroup.WithContext(serving)
	group.Go(func() error {
		return telemetry.Serve(working, p.settings.metricsAddress, telemetry.MetricsHandler(p.registry))
	})
	group.Go(func() error { return telemetry.Serve(working, p.settings.healthAddress, p.health.Handler()) })
	group.Go(func() error { return p.agent.Run(working, p.program.connector) })
	if p.program.child != nil {
		group.Go(func() error { return p.program.child.Run(working, signals, p.settings.grace) })
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
			p.drain()
		case <-working.Done():
		}
		stop()
		return nil
	})
	return errors.Join(group.Wait(), p.program.close())
}

// drain has the pod lose its endpoints before the program ends. A program that never had its ports has
// no requests.
func (p *process) drain() {
	if p.agent.Ready() != nil {
		return
	}
	p.health.Add("draining", func() error { return errDraining })
	p.log.Info("agent.draining", "delay", p.settings.drainDelay.String())
	<-time.After(p.settings.drainDelay)
}
