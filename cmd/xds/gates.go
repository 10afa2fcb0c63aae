// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/internal/gatekeeper"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// gateSetup has the gates that the installation offers to rollouts.
type gateSetup struct {
	installation rollout.Installation
	// queries is nil without a Prometheus.
	queries gatekeeper.Queries
	egress  deliver.Egress
}

// gatesOf says which gates rollouts can have. The clock tells how old a sample is.
func gatesOf(opts *options.Gates, now func() time.Time) (gateSetup, error) {
	egress, err := opts.Rules()
	if err != nil {
		return gateSetup{}, fmt.Errorf("reading where webhooks may be: %w", err)
	}
	setup := gateSetup{
		installation: rollout.Installation{Prometheus: opts.Prometheus.URL != "", InlineQueries: opts.InlineQueries, GateSecrets: options.SplitList(opts.Secrets), HeadroomPercent: &opts.HeadroomPercent},
		egress:       egress,
	}
	if opts.Prometheus.URL == "" {
		return setup, nil
	}
	client, err := prometheus.New(opts.Prometheus.Config, now)
	if err != nil {
		return gateSetup{}, err
	}
	setup.queries = client
	return setup, nil
}
