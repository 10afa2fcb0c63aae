// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/controller/trafficrouter"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/secrets"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
)

// connectors returns the routers of TrafficRouters for one time of leading; nil where the installation has none.
func (l *leader) connectors(mgr manager.Manager) (abrelease.Connectors, error) {
	if !l.connects.Enabled {
		return nil, nil //nolint:nilnil // releases that name a TrafficRouter are refused by name
	}
	ctx, cancel := context.WithCancel(context.Background())
	resign := l.connected.Lead(l.part.Time.Now)
	if err := mgr.Add(manager.RunnableFunc(func(leading context.Context) error {
		<-leading.Done()
		cancel()
		resign()
		return nil
	})); err != nil {
		cancel()
		resign()
		return nil, fmt.Errorf("ending the requests of routers: %w", err)
	}
	keys := secrets.Reader{Live: mgr.GetAPIReader(), Namespace: l.part.Namespace, Only: append([]string{}, options.SplitList(l.connects.Secrets)...)}
	registry := &connect.Registry{
		Context: ctx, Client: mgr.GetClient(), Routes: mgr.GetClient(), Now: l.part.Time.Now, Metrics: l.connected, // objects without a Go type are read live
		Sender: deliver.NewAsker(keys.Resolve, l.gates.egress, nil), Resolve: keys.Resolve,
	}
	status := &trafficrouter.Controller{Client: mgr.GetClient(), Reports: registry.ReportOf, Resolve: keys.Resolve, Clock: l.part.Time}
	if l.traefik != nil {
		registry.Live, registry.Endpoints, registry.TraefikClient = mgr.GetAPIReader(), l.window, deliver.NewReader(l.gates.egress)
		status.Traefiks = registry
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return l.leadTraefiks(ctx, registry) })); err != nil {
			return nil, fmt.Errorf("answering Traefiks: %w", err)
		}
	}
	return registry, status.Register(mgr)
}
