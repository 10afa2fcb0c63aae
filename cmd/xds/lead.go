// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/discovery/authority"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/servertime"
)

// leader does what one replica does for all. Losing its lease ends that alone:
// proxies are served by every replica, whoever leads.
type leader struct {
	part        elected.Part
	authorities *authority.Metrics
	sequences   *abrelease.Metrics
	releases    *abrelease.RolloutMetrics
	window      *discovery.Window
	routers     *discovery.Routers
	times       abrelease.Times
	rollouts    bool
	gates       gateSetup
}

func newLeader(config *rest.Config, opts *options.XDS, registry prometheus.Registerer, log logr.Logger) (*leader, error) {
	authorities, err := authority.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	sequences, err := abrelease.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	part := elected.Part{
		Config: config, Lease: opts.LeaseName, Namespace: opts.Namespace, LeaderElect: true,
		Time: servertime.New(clock.RealClock{}), Log: log,
	}
	gates, err := gatesOf(&opts.Gates, part.Time.Now)
	if err != nil {
		return nil, err
	}
	releases, err := abrelease.NewRolloutMetrics(registry)
	if err != nil {
		return nil, err
	}
	if opts.ReleaseSeries {
		if err := registry.Register(releases.Series()); err != nil {
			return nil, fmt.Errorf("registering the series of releases: %w", err)
		}
	}
	return &leader{part: part, authorities: authorities, sequences: sequences, releases: releases, rollouts: opts.Rollouts, gates: gates}, nil
}

// run competes for the lease until ctx ends, and leads while it has it.
func (l *leader) run(ctx context.Context) {
	l.part.Again(ctx, clock.RealClock{}, l.lead)
}

// lead lists the leader's parts. It is called anew for each time of leading, so what
// outlives one, such as metrics, is made by newLeader.
func (l *leader) lead(mgr manager.Manager, _ *rest.Config) error {
	if err := mgr.Add(manager.RunnableFunc(l.routers.Lead)); err != nil {
		return fmt.Errorf("following the other replicas: %w", err)
	}
	err := abrelease.Add(mgr, abrelease.Setup{
		Window: l.window, Routers: l.routers, Reporters: l.routers, Metrics: l.sequences, RolloutMetrics: l.releases, Namespace: l.part.Namespace, Clock: l.part.Time, Log: l.part.Log, Times: l.times,
		Rollouts: l.rollouts, Installation: l.gates.installation, Queries: l.gates.queries, Egress: l.gates.egress,
	})
	return errors.Join(err, authority.Add(mgr, l.part.Namespace, l.authorities))
}
