// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// probeEvery is how often the evidence store is tried while no plan does. A probe
// writes, which a bucket that keeps all versions remembers. The gauge of the store counts
// on it.
const probeEvery = 5 * time.Minute

// prober finds out that no record could be written before there is one to write.
type prober struct {
	ready func(context.Context) error
	clock clock.WithTicker
	log   logr.Logger
}

// Start implements manager.Runnable; only the leader does.
func (p *prober) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		if err := p.ready(ctx); err != nil && ctx.Err() == nil {
			p.log.Error(err, "evidence.store.unready")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}
