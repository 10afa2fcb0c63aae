// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
)

// Config of the router of one release.
type Config struct {
	// Client reads the route from the API server, without a cache: a patch tests the version that was read.
	Client client.Client
	// Route is an [HTTPRoute] or a [GRPCRoute]. Rule may be empty if the route has one rule.
	Kind  schema.GroupVersionKind
	Route types.NamespacedName
	Rule  string
	// Targets have the Service of each variation.
	Targets Targets
	// Settle is how long after Accepted a split counts as in force, 0 or more.
	Settle time.Duration
	// Manager is the field manager of the writes.
	Manager string
	Now     func() time.Time
	// State is that of the router before this one; the zero value for a new release.
	State State
}

// Router is a traffic.Router by the weights of a route.
type Router struct {
	Config
	mu      sync.Mutex
	state   State
	weights Weights // nil before the first split of this process
	// wanted is the sequence of the last Apply, told the time of its first try, and failed the error of its last try.
	wanted uint64
	told   time.Time
	failed error
	// accepted is when this process saw the generation accepted first. A new process waits for the settle time anew.
	generation int64
	accepted   time.Time
}

var _ traffic.Router = (*Router)(nil)

// New returns the router of a configuration.
func New(config Config) *Router { return &Router{Config: config, state: config.State} }

// State returns what the caller has to store after each Apply and Remove, also after one that failed.
func (r *Router) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.since(r.Now())
}

// Capabilities implements traffic.Router.
func (*Router) Capabilities() traffic.Capabilities { return connectors.GatewayAPI.Capabilities }

// Validate implements traffic.Router. Whether the route fits is known when it is read, by Apply.
func (r *Router) Validate(split traffic.Split) error {
	if err := split.Validate(); err != nil {
		return err
	}
	return errors.Join(r.Capabilities().Check(split), r.Targets.Check(split))
}

// Apply implements traffic.Router. A route that does not fit is a [RefusalError], and one that another writer keeps
// changing a [HeldError].
func (r *Router) Apply(ctx context.Context, split traffic.Split) error {
	if err := r.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if split.Sequence < max(r.state.Sequence, 1) {
		return &traffic.LaterError{Sequence: r.state.Sequence}
	}
	if split.Sequence != r.wanted {
		r.wanted, r.told = split.Sequence, r.Now()
	}
	weights := weightsOf(split, r.Targets)
	if r.failed = r.write(ctx, split.Sequence, weights); r.failed != nil {
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, r.failed)
	}
	r.state.Sequence, r.state.Active, r.weights = split.Sequence, split.Shares.Stable(), weights
	return nil
}

// write gives the route its weights. The lock is held.
func (r *Router) write(ctx context.Context, sequence uint64, weights Weights) error {
	route, err := r.read(ctx)
	if err != nil {
		return err
	}
	patch, err := Plan(route, r.Rule, weights)
	if err != nil || patch == nil {
		return err
	}
	if r.state, err = decide(route, r.state, sequence, r.Manager, r.Now()); err != nil {
		return err
	}
	return r.patch(ctx, patch)
}

func (r *Router) patch(ctx context.Context, operations []Operation) error {
	raw, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	if err := r.Client.Patch(ctx, r.object(), client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(r.Manager)); err != nil {
		return fmt.Errorf("writing weights to %s %s: %w", r.Kind.Kind, r.Route, err)
	}
	return nil
}

// Remove implements traffic.Router. It leaves all requests to the stable variation of the last split, and succeeds when
// each parent of the route has accepted that, or the route is not there any more.
func (r *Router) Remove(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Sequence == 0 {
		return nil
	}
	if err := r.leave(ctx); err != nil {
		return fmt.Errorf("leaving all requests to variation %s: %w", r.state.Active, err)
	}
	r.state, r.weights, r.generation, r.wanted, r.failed = State{}, nil, 0, 0, nil
	return nil
}

// leave writes the last weights and has them confirmed. The lock is held.
func (r *Router) leave(ctx context.Context) error {
	weights := allAt(r.state.Active, r.Targets)
	route, err := r.read(ctx)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	patch, err := Plan(route, r.Rule, weights)
	if err != nil {
		return err
	}
	if patch != nil {
		if err := r.patch(ctx, patch); err != nil {
			return err
		}
		if route, err = r.read(ctx); err != nil {
			return err
		}
	}
	if verdict := Assess(route); len(verdict.Late) > 0 {
		return fmt.Errorf("%s has not accepted it: %s", verdict.Late[0].Name, verdict.Late[0].Why)
	}
	return nil
}

// Measure implements traffic.Router: Gateway API counts no requests.
func (*Router) Measure(_ context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	return traffic.Measurement{Next: since}, nil
}

func (r *Router) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.Kind)
	object.SetNamespace(r.Route.Namespace)
	object.SetName(r.Route.Name)
	return object
}

func (r *Router) read(ctx context.Context) (*Route, error) {
	object := r.object()
	switch err := r.Client.Get(ctx, r.Route, object); {
	case apierrors.IsNotFound(err):
		return nil, refuse(ReasonRouteNotFound, "%s %s is not there", r.Kind.Kind, r.Route)
	case apierrors.IsForbidden(err):
		return nil, refuse(ReasonNotPermitted, "the discovery server may not read %s %s; add the namespace to routers.gatewayAPI.namespaces in the values of the chart", r.Kind.Kind, r.Route)
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", r.Kind.Kind, r.Route, err)
	}
	return Decode(object)
}

func isNotFound(err error) bool {
	var refusal *RefusalError
	return errors.As(err, &refusal) && refusal.Reason == ReasonRouteNotFound
}
