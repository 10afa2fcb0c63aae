// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// recordBeforehand writes the record of a step that has ended, and that of the end of its plan,
// before the ledgers are told: the write that ends the place keeps the heads of both. A record that
// cannot be written now is tried again afterwards, so that a broken store keeps no place.
func (r *run) recordBeforehand(ctx context.Context, step int32) {
	if r.plan.Status.Steps[step].Evidence == nil && r.facts.Of(step).Recorded != protocol.Yes {
		answer, stored := r.record(ctx, step)
		if answer != protocol.Yes {
			return
		}
		r.learn(step, func(f *protocol.StepFacts) { f.Recorded, f.Evidence = answer, stored })
	}
	end := protocol.End(r.state())
	if end == nil {
		return
	}
	record, ok := r.decisionRecord(end)
	if !ok || r.withdraw(ctx) != nil {
		return
	}
	_, _ = r.note(ctx, record) // the status that ends the plan needs the record, and tries again
}
