// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
)

// addChecks makes the part that checks objects past the watch.
func (p *parts) addChecks(setup Setup) {
	p.checks = &baseline.Checks{
		Reconciler: p.baselines, Trigger: p.trigger, Live: p.live, Threshold: setup.DriftThreshold, MaxConcurrent: setup.MaxConcurrentChecks,
		Clock: setup.Clock, Log: setup.Log.WithName("checks"),
	}
}
