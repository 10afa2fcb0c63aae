// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
)

// addChecks makes the part that checks objects past the watch.
func (p *parts) addChecks(setup Setup) error {
	live, err := baseline.NewLiveObjects(setup.Config, setup.Clock)
	if err != nil {
		return err
	}
	p.checks = &baseline.Checks{
		Reconciler: p.baselines, Trigger: p.trigger, Live: live, MaxConcurrent: setup.MaxConcurrentChecks,
		Clock: setup.Clock, Log: setup.Log.WithName("checks"),
	}
	return nil
}
