// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
)

// returnFields gives the fields that the write of a step took over back to the field managers
// that owned them when the state was authorized.
func (r *run) returnFields(ctx context.Context, step int32) protocol.Write {
	m, target := r.material(step), r.target(step)
	owners, err := r.Bodies.FieldManagers(ctx, r.plan.Namespace, target.Revision)
	if err != nil && !apierrors.IsNotFound(err) {
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	}
	back, err := repair.ReturnFields(&m.metadata, owners)
	switch {
	case err != nil:
		return protocol.Write{Result: protocol.Refused, Message: err.Error()}
	case back == nil:
		return protocol.Write{Result: protocol.Stored}
	}
	return r.answer(step, func() ([]byte, error) { return r.Targets.Patch(ctx, r.ref(step), back.Patch) })
}
