// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Observe implements traffic.Router. Weights that another writer changed contradict the split. A split that was not
// written, and a route that cannot be read, are told with the reason.
func (r *Router) Observe(ctx context.Context) (traffic.Observation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.unfit(explain(r.failed)), nil
	}
	if r.weights == nil {
		return traffic.Observation{Knowledge: traffic.Unknown}, nil
	}
	route, err := r.read(ctx)
	if err != nil {
		return r.unfit(explain(err)), nil
	}
	patch, err := Plan(route, r.Rule, r.weights)
	switch {
	case err != nil:
		return r.unfit(explain(err)), nil
	case patch != nil:
		return r.unfit(r.edited(route)), nil
	}
	return r.accept(route), nil
}

// explain returns the knowledge that an error leaves, and the reason. A route that is not there carries out no split.
func explain(err error) (traffic.Knowledge, string) {
	var held *HeldError
	switch {
	case errors.As(err, &held):
		return traffic.Contradicted, err.Error()
	case isNotFound(err):
		return traffic.NoProxies, err.Error()
	}
	return traffic.Unknown, err.Error()
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
	if verdict.Wanted == 0 {
		return r.unfit(traffic.NoProxies, "the route has no parent, so no Gateway carries it out")
	}
	switch {
	case !verdict.IsAccepted():
		r.generation = 0
	case r.generation != route.Generation:
		r.generation, r.accepted = route.Generation, r.Now()
	}
	return verdict.observation(r.state.Sequence, r.told, r.accepted.Add(r.Settle))
}
