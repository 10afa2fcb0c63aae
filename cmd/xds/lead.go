// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
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
	connects    options.Routers
	connected   *connect.Metrics
	vigil       *abrelease.Vigil
	history     *abrelease.History
	leases      coordinationv1.CoordinationV1Interface
	// traefik is nil where no Traefik polls.
	traefik *provider.Port
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
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of leases: %w", err)
	}
	releases, err := abrelease.NewRolloutMetrics(registry)
	if err != nil {
		return nil, err
	}
	connected, err := connect.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	if opts.ReleaseSeries {
		if err := registry.Register(releases.Series()); err != nil {
			return nil, fmt.Errorf("registering the series of releases: %w", err)
		}
	}
	return &leader{part: part, authorities: authorities, sequences: sequences, releases: releases, rollouts: opts.Rollouts, gates: gates, connects: opts.Routers, connected: connected, leases: leases}, nil
}

// run competes for the lease until ctx ends, and leads while it has it.
func (l *leader) run(ctx context.Context) {
	if !l.rollouts {
		l.part.Again(ctx, clock.RealClock{}, l.lead)
		return
	}
	l.vigil = &abrelease.Vigil{Follow: l.routers.Lead, Ask: l.askLease, Clock: clock.RealClock{}, Log: l.part.Log}
	done := make(chan struct{})
	go func() { defer close(done); l.vigil.Run(ctx) }()
	l.part.Again(ctx, clock.RealClock{}, l.lead)
	<-done
}

// staleLease is how long ago a lease may have been renewed at most: twice the time after which another
// replica takes it.
const staleLease = 30 * time.Second

// errUnled says that no replica renews the lease: the API server may answer and store nothing.
var errUnled = errors.New("no replica renews the lease")

// askLease reads the lease, as the API server has it in its store, and demands that a replica renews it.
func (l *leader) askLease(ctx context.Context) error {
	lease, err := l.leases.Leases(l.part.Namespace).Get(ctx, l.part.Lease, metav1.GetOptions{})
	if err != nil {
		return err //nolint:wrapcheck // whether it is an answer is all that counts
	}
	if renewed := lease.Spec.RenewTime; renewed == nil || l.part.Time.Now().Sub(renewed.Time) > staleLease {
		return errUnled
	}
	return nil
}

// lead lists the leader's parts. It is called anew for each time of leading, so what
// outlives one, such as metrics, is made by newLeader.
func (l *leader) lead(mgr manager.Manager, _ *rest.Config) error {
	if err := mgr.Add(manager.RunnableFunc(l.routers.Lead)); err != nil {
		return fmt.Errorf("following the other replicas: %w", err)
	}
	connectors, err := l.connectors(mgr)
	if err != nil {
		return err
	}
	err = abrelease.Add(mgr, abrelease.Setup{
		Window: l.window, Routers: l.routers, Reporters: l.routers, Orders: l.routers, Metrics: l.sequences, RolloutMetrics: l.releases, History: l.history, Namespace: l.part.Namespace, Clock: l.part.Time, Log: l.part.Log, Times: l.times,
		Rollouts: l.rollouts, Vigil: l.vigil, Installation: l.gates.installation, Queries: l.gates.queries, Egress: l.gates.egress, Connectors: connectors,
	})
	return errors.Join(err, authority.Add(mgr, l.part.Namespace, l.authorities))
}
