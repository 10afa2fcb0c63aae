// SPDX-License-Identifier: Apache-2.0

package elected

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The wait before a manager that ended is followed by another one.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
	// steady is how long one has worked when its end is none of a row.
	steady = time.Minute
)

// Again runs managers of the part, one after the other, until ctx ends: one that
// loses its lease ends, and with it only what it did. It is for a process that has
// more to do than to lead. add gives each manager its controllers.
func (p Part) Again(ctx context.Context, clock clock.Clock, add func(manager.Manager, *rest.Config) error) {
	wait := firstWait
	for {
		began := clock.Now()
		err := p.once(ctx, add)
		if ctx.Err() != nil {
			return
		}
		if clock.Since(began) >= steady {
			wait = firstWait
		}
		p.Log.Info("leading ended; it begins again", "lease", p.Lease, "reason", reason(err), "wait", wait.String())
		timer := clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		wait = min(2*wait, lastWait)
	}
}

func (p Part) once(ctx context.Context, add func(manager.Manager, *rest.Config) error) error {
	mgr, config, err := p.New()
	if err != nil {
		return err
	}
	if err := add(mgr, config); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func reason(err error) string {
	if err == nil {
		return "it stopped"
	}
	return err.Error()
}
