// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// ready judges what was read of a target. The message says why it is not ready.
func (r *run) ready(ctx context.Context, step int32) (answer protocol.Answer, message string) {
	m := r.material(step)
	known := readiness.Knowledge{Rule: r.guards.Readiness(r.plan.Namespace, r.target(step))}
	if known.Rule == nil && readiness.Silent(m.raw, m.standard.GVK) {
		known.Status = r.Kinds.Status(ctx, m.standard.GVK)
	}
	switch state, message := readiness.Judge(m.raw, m.standard.GVK, known); state {
	case readiness.Ready:
		return protocol.Yes, ""
	case readiness.NotReady:
		return protocol.No, message
	case readiness.Unknown:
		return protocol.Unknown, message
	default:
		return protocol.Unknown, message
	}
}
