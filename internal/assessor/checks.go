// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/checks"
)

// addChecks makes the part that checks objects past the watch.
func (p *parts) addChecks(reader client.Reader, setup Setup) error {
	metrics, err := checks.NewMetrics(setup.Registry, setup.Clock, p.baselines.Agenda)
	if err != nil {
		return err
	}
	p.checks = &checks.Scheduler{
		Client: reader, Agenda: p.baselines.Agenda, Watch: p.ahead, Trigger: p.trigger, Live: p.live,
		Guards: p.guards, Defaults: p.defaults, Metrics: metrics,
		Threshold: setup.DriftThreshold, MaxConcurrent: setup.MaxConcurrentChecks,
		Clock: setup.Clock, Log: setup.Log.WithName("checks"),
	}
	return nil
}
