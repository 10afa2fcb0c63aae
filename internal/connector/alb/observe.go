// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Observe implements traffic.Router. Weights that another writer changed contradict the split. An API that throttles
// leaves the split Unknown.
func (r *Router) Observe(ctx context.Context) (traffic.Observation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weights == nil {
		return traffic.Observation{Knowledge: traffic.Unknown}, nil
	}
	fits, err := r.showsWeights(ctx, r.weights, Every)
	if err == nil && fits {
		r.state.Confirmed = true
		err = r.lookAtHealth(ctx)
	}
	var refusal *RefusalError
	var throttled *ThrottledError
	switch {
	case errors.As(err, &refusal):
		r.accepted = time.Time{}
		return r.observeUnknown(refusal.Error()), nil
	case errors.As(err, &throttled):
		return r.observeUnknown(throttled.Error()), nil
	case err != nil:
		return traffic.Observation{}, err
	case !fits:
		return r.observeOtherWeights(), nil
	}
	return r.observeWeights(), nil
}

// observeUnknown returns an observation without knowledge of the split. The lock is held.
func (r *Router) observeUnknown(why string) traffic.Observation {
	late := traffic.OutOfSync{Name: r.route.String(), Why: why, Since: r.told}
	return traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: []traffic.OutOfSync{late}}
}

// observeOtherWeights returns the observation of a route with other weights. The lock is held.
func (r *Router) observeOtherWeights() traffic.Observation {
	r.accepted = time.Time{}
	if !r.state.Confirmed || r.isAnswering() {
		return r.observeUnknown("the API does not show the weights yet")
	}
	seen := r.observeUnknown("RouteChangedByAnother: another writer changed the weights; AWS CloudTrail names the writer")
	seen.Knowledge = traffic.Contradicted
	return seen
}

// lookAtHealth reads the health of target groups, unless the last answer still counts. The lock is held.
func (r *Router) lookAtHealth(ctx context.Context) error {
	if !r.lateAt.IsZero() && r.Now().Sub(r.lateAt) < Every {
		return nil
	}
	health, err := r.readHealth(ctx, r.weights)
	if err != nil {
		return err
	}
	r.late, r.lateAt = findLate(r.weights, health), r.Now()
	return nil
}

// observeWeights returns the observation of a route with the weights. The lock is held.
func (r *Router) observeWeights() traffic.Observation {
	wanted := len(liveGroups(r.weights))
	seen := traffic.Observation{Knowledge: traffic.Unknown, Wanted: wanted, Acknowledged: wanted - len(r.late)}
	for _, late := range r.late {
		late.Since = r.told
		seen.OutOfSync = append(seen.OutOfSync, late)
	}
	if len(r.late) > 0 {
		r.accepted = time.Time{}
		return seen
	}
	now := r.Now()
	if r.accepted.IsZero() || now.Sub(r.looked) > longestGap {
		r.accepted = now
	}
	r.looked = now
	seen.Knowledge, seen.Sequence, seen.SettledAt = traffic.Accepted, r.state.Sequence, r.accepted.Add(r.Settle)
	if !now.Before(seen.SettledAt) {
		r.periods = extendPeriods(r.periods, r.state.Sequence, seen.SettledAt, now)
	}
	return seen
}
