// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Observe implements traffic.Router. Weights that another writer changed contradict the split.
func (r *Router) Observe(ctx context.Context) (traffic.Observation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weights == nil {
		return traffic.Observation{Knowledge: traffic.Unknown}, nil
	}
	route, err := r.read(ctx)
	var refusal *RefusalError
	switch {
	case errors.As(err, &refusal):
		return r.unfit(traffic.Unknown, refusal.Error()), nil
	case err != nil:
		return traffic.Observation{}, err
	}
	patch, err := Plan(route, r.Rule, r.weights)
	switch {
	case err != nil:
		return r.unfit(traffic.Unknown, err.Error()), nil
	case patch != nil:
		return r.unfit(r.edited(route)), nil
	}
	return r.accept(route), nil
}

// unfit is the observation of a route that does not have the weights.
func (r *Router) unfit(knowledge traffic.Knowledge, why string) traffic.Observation {
	r.generation = 0
	late := traffic.OutOfSync{Name: fmt.Sprintf("%s %s", r.Kind.Kind, r.Route), Why: why, Since: r.told}
	return traffic.Observation{Knowledge: knowledge, Wanted: 1, OutOfSync: []traffic.OutOfSync{late}}
}

// edited returns what other weights in the route mean.
func (r *Router) edited(route *Route) (traffic.Knowledge, string) {
	other := changedBy(route, r.Manager)
	if other == "" {
		return traffic.Unknown, "the weights are those of another sequence"
	}
	return traffic.Contradicted, fmt.Sprintf("RouteChangedByAnother: field manager %q changed the weights", other)
}

// accept is the observation of a route that has the weights. The lock is held.
func (r *Router) accept(route *Route) traffic.Observation {
	verdict := Assess(route)
	switch {
	case !verdict.IsAccepted():
		r.generation = 0
	case r.generation != route.Generation:
		r.generation, r.accepted = route.Generation, r.Now()
	}
	return verdict.observation(r.state.Sequence, r.told, r.accepted.Add(r.Settle))
}
