// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// redis says what sort of copy of the ledgers there is.
type redis int

const (
	// absent: none is installed.
	absent redis = iota
	// flushed: it knows nothing, and refuses nothing.
	flushed
	// liar: it answers anything.
	liar
)

// mirror is what an executor asks before the ledgers.
func (w *World) mirror(l *schedule.Life) exec.Mirror {
	if w.redis == absent {
		return nil
	}
	return &copyOf{w, l}
}

type copyOf struct {
	w *World
	l *schedule.Life
}

// Ask implements exec.Mirror.
func (c *copyOf) Ask(ctx context.Context, l *v1alpha1.RemediationLedger, _ ledger.Request, _ ledger.Rules) (ledger.Gate, bool) {
	refused, err := schedule.Call(ctx, c.l, schedule.Message{What: "redis ask " + l.Name}, func() (bool, error) {
		return c.w.redis == liar && !c.w.calm.Load() && c.w.s.Rand().IntN(3) == 0, nil
	})
	if err != nil || !refused {
		return ledger.Gate{}, false
	}
	gate := ledger.Gate{Name: ledger.GateHour, Message: "says the copy"}
	if c.l.Rand().IntN(2) == 0 {
		gate.Until = time.Now().Add(time.Duration(c.l.Rand().Int64N(int64(5 * time.Minute))))
	}
	return gate, true
}

// Put implements exec.Mirror.
func (c *copyOf) Put(ctx context.Context, l *v1alpha1.RemediationLedger) {
	_, _ = schedule.Call(ctx, c.l, schedule.Message{What: "redis put " + l.Name, Writes: true}, func() (any, error) { return nil, nil })
}
