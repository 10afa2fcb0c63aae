// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/restore"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
)

const (
	// Settle is how long a balancer may take to follow its API.
	Settle = time.Minute
	// Every is how long an answer of the API counts, so a look each second costs few requests.
	Every = 10 * time.Second
	// fresh is how long an answer of the API counts before a write.
	fresh = time.Second
	// consistency is how long the API may answer with the weights from before a write.
	consistency = 10 * time.Second
)

// Config of the router of one release.
type Config struct {
	Balancers Balancers
	Metrics   Metrics
	// Region and Account are those of the route and of the target groups.
	Region, Account string
	// Route is the ARN of a rule, or of a listener for its default action.
	Route string
	// Groups has the ARN of the target group of each variation.
	Groups Groups
	// Settle is how long after Accepted a split counts as in force, 0 or more; see the constant.
	Settle time.Duration
	Now    func() time.Time
	// Random returns numbers from 0 to below 1.
	Random func() float64
	// State is that of the router before this one; the zero value for a new release.
	State State
}

// Router is a traffic.Router by the weights of target groups.
type Router struct {
	Config
	route resource

	mu      sync.Mutex
	state   State
	weights Weights // nil before the first split of this process
	// told is the time at which this process sent the sequence first. answered is the time at which the API took weights
	// last.
	told, answered time.Time
	// accepted is the time at which this process saw the weights and healthy targets first, and looked that of the last
	// look. accepted is zero while the API shows other weights, or a target group has no healthy target.
	accepted, looked time.Time
	// left is the time at which this process first saw that the stable variation has all requests.
	left time.Time
	// periods are in order, the latest one at the end.
	periods []period
	// seen is the route of the last answer, and late the target groups without healthy targets. seenAt and lateAt are the
	// times of the answers.
	seen           *Route
	seenAt, lateAt time.Time
	late           []traffic.OutOfSync

	balancersPause, metricsPause pause
}

var _ traffic.Router = (*Router)(nil)

// New returns the router of a configuration. An ARN that the router may not use is a [RefusalError].
func New(config Config) (*Router, error) {
	route, err := parseResource(config.Route, config.Region, config.Account, kindRule, kindListener)
	if err != nil {
		return nil, err
	}
	for _, group := range config.Groups {
		if _, err := parseResource(group, config.Region, config.Account, kindTargetGroup); err != nil {
			return nil, err
		}
	}
	return &Router{Config: config, route: route, state: config.State}, nil
}

// State returns the state for the next leader. The caller stores it after each Apply and Remove, even a failed one.
func (r *Router) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.state
	state.Restored = restore.KeepRecent(state.Restored, r.Now())
	return state
}

// Shares returns the share that each target group really gets, in basis points by ARN. Whole weights to 999 do not reach
// each share of a split. Shares returns nil before the first split of this process.
func (r *Router) Shares() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weights == nil {
		return nil
	}
	return r.weights.computeShares()
}

// Capabilities implements traffic.Router.
func (*Router) Capabilities() traffic.Capabilities { return connectors.AWSALB.Capabilities }

// Validate implements traffic.Router. Whether the route fits is known when it is read, by Apply.
func (r *Router) Validate(split traffic.Split) error {
	if err := split.Validate(); err != nil {
		return err
	}
	return errors.Join(r.Capabilities().Check(split), r.Groups.Check(split))
}

// Apply implements traffic.Router. It returns a [RefusalError] for a route that does not fit, a [restore.HeldError] while
// another writer keeps changing the weights, and a [ThrottledError] while the API refuses requests. A write fails if its
// answer is lost; the next read of the API finds the weights.
func (r *Router) Apply(ctx context.Context, split traffic.Split) error {
	if err := r.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if split.Sequence < max(r.state.Sequence, 1) {
		return &traffic.LaterError{Sequence: r.state.Sequence}
	}
	if err := r.applyWeights(ctx, split, weightsOf(split, r.Groups)); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	return nil
}

// applyWeights gives the route the weights of a split. The lock is held.
func (r *Router) applyWeights(ctx context.Context, split traffic.Split, weights Weights) error {
	anew, age := split.Sequence != r.state.Sequence, Every
	if anew {
		age = fresh
	}
	fits, err := r.showsWeights(ctx, weights, age)
	if err != nil {
		return err
	}
	if !anew && (fits || r.isAnswering()) {
		r.noteSplit(split, weights)
		r.state.Confirmed = r.state.Confirmed || fits
		return nil
	}
	if err := r.readOwner(ctx); err != nil {
		return err
	}
	if fits {
		r.noteSplit(split, weights)
		r.state.Confirmed = true
		return nil
	}
	state, err := decideWrite(r.state, r.route.String(), split.Sequence, r.Now())
	if err != nil {
		return err
	}
	r.state = state
	r.noteSplit(split, weights)
	return r.writeWeights(ctx, weights)
}

// noteSplit notes the split that is sent. The lock is held.
func (r *Router) noteSplit(split traffic.Split, weights Weights) {
	if split.Sequence != r.state.Sequence || r.weights == nil {
		r.told, r.answered, r.accepted, r.lateAt = r.Now(), time.Time{}, time.Time{}, time.Time{}
	}
	r.state = r.state.beginSequence(split.Sequence, split.Shares.Stable(), r.Now())
	r.weights = weights
}

// isAnswering tells whether the API may still answer with the weights from before the last write. The lock is held.
func (r *Router) isAnswering() bool {
	return !r.answered.IsZero() && r.Now().Sub(r.answered) < consistency
}

// showsWeights tells whether the route has weights. An answer of the API counts if it is younger than age. The lock is
// held.
func (r *Router) showsWeights(ctx context.Context, weights Weights, age time.Duration) (bool, error) {
	route, err := r.lookAtRoute(ctx, age)
	if err != nil {
		return false, err
	}
	actions, err := Plan(route, weights)
	return err == nil && actions == nil, err
}

// lookAtRoute returns the route. An answer of the API counts if it is younger than age. The lock is held.
func (r *Router) lookAtRoute(ctx context.Context, age time.Duration) (*Route, error) {
	if r.seen != nil && r.Now().Sub(r.seenAt) < age {
		return r.seen, nil
	}
	route, err := r.readRoute(ctx)
	if err != nil {
		r.seen = nil
		return nil, err
	}
	r.seen, r.seenAt = route, r.Now()
	return route, nil
}

// writeWeights writes weights to the route. A write replaces all actions, so writeWeights reads the route shortly before,
// and compares the answer with the read. The lock is held.
func (r *Router) writeWeights(ctx context.Context, weights Weights) error {
	before, err := r.lookAtRoute(ctx, fresh)
	if err != nil {
		return err
	}
	actions, err := Plan(before, weights)
	if err != nil || actions == nil {
		return err
	}
	r.seen = nil
	after, err := r.writeActions(ctx, actions)
	if err != nil {
		return err
	}
	r.answered, r.state.Confirmed = r.Now(), true
	return compareKept(before, after)
}

// Remove implements traffic.Router. It leaves all requests to the stable variation of the last split, and succeeds when
// the API shows the weights and the settle time is over, or the route does not exist any more.
func (r *Router) Remove(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Sequence == 0 {
		return nil
	}
	if err := r.leaveAllRequests(ctx); err != nil {
		return fmt.Errorf("leaving all requests to variation %s: %w", r.state.Active, err)
	}
	r.state, r.weights, r.periods = State{}, nil, nil
	r.accepted, r.left = time.Time{}, time.Time{}
	return nil
}

// leaveAllRequests gives all requests to the stable variation, and returns an error until the API confirms the weights.
// The lock is held.
func (r *Router) leaveAllRequests(ctx context.Context) error {
	weights, has := giveAllTo(r.state.Active, r.Groups)
	if !has {
		return refuse(ReasonTargetGroupsDiffer, "variation %s has no target group", r.state.Active)
	}
	fits, err := r.showsWeights(ctx, weights, Every)
	if err == nil && !fits {
		r.left = time.Time{}
		if err = r.writeWeights(ctx, weights); err == nil {
			fits, err = r.showsWeights(ctx, weights, fresh)
		}
	}
	var refusal *RefusalError
	switch {
	case errors.As(err, &refusal) && refusal.Reason == ReasonRouteNotFound:
		return nil
	case err != nil:
		return err
	case !fits:
		return fmt.Errorf("%s does not show the weights yet", r.route)
	}
	if r.left.IsZero() {
		r.left = r.Now()
	}
	if settled := r.left.Add(r.Settle); r.Now().Before(settled) {
		return fmt.Errorf("%s may send requests by the former weights until %s", r.route, settled.UTC().Format(time.RFC3339))
	}
	return nil
}
