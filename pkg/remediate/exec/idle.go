// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// lookAt reads what may hold the plan back. For a plan that only waits it asks the caches,
// which cost the API server nothing. A cache may be behind, so it is believed only when it
// shows nothing that would change the plan.
func (r *run) lookAt(ctx context.Context, idle bool) protocol.Brakes {
	if idle && r.Cached != nil && r.nothingChanged(ctx) {
		return protocol.Brakes{Known: true, Cached: true}
	}
	return r.look(ctx)
}

// nothingChanged says that the caches show no halt, and policy and Environment as the plan
// was made for.
func (r *run) nothingChanged(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, protocol.RequestTimeout)
	defer cancel()
	policy, err := r.readPolicy(ctx, r.Cached)
	if err != nil || policy == nil || policy.Spec.Mode != v1alpha1.PolicyModeActive || planner.Digest(&policy.Spec) != r.plan.Spec.Plan.Policy.Digest {
		return false
	}
	if halt, _, err := r.readHalts(ctx, r.Cached); err != nil || halt != nil {
		return false
	}
	guards, err := r.Guards.Read(ctx, r.Cached)
	if err != nil {
		return false
	}
	r.policy, r.guards = policy, guards
	return r.astray() == ""
}
