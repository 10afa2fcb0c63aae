// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// lookTimeout bounds a look: an API server that does not answer holds up no other release.
const lookTimeout = 10 * time.Second

// How soon a release is looked at again.
const (
	// unsyncedAgain is for a release whose endpoints are not known yet.
	unsyncedAgain = 200 * time.Millisecond
	// conflictAgain is for one of which the cache is behind.
	conflictAgain = 10 * time.Millisecond
	// toldAgain is for one that was just told to proxies, which acknowledge within
	// milliseconds.
	toldAgain = 200 * time.Millisecond
	// unacknowledgedAgain is for one that some proxies have not acknowledged.
	unacknowledgedAgain = time.Second
	// undecidedAgain is for a release without a Service, or without room on the Service. No event
	// tells the release that this has changed.
	undecidedAgain = 5 * time.Second
)

// Endpoints counts the endpoints of each variation of a split, for each type of router.
type Endpoints interface {
	// Count is false if the Service is not there.
	Count(ctx context.Context, split traffic.Split) (of map[string]traffic.Endpoints, found bool, err error)
}

// Mesh shows the mesh as it would be if proxies divided a Service by a split.
type Mesh interface {
	Prospect(ctx context.Context, split traffic.Split) (ir.Mesh, error)
}

// Routers gives each release the router that carries it out.
type Routers interface {
	Router(release types.NamespacedName) traffic.Router
}

// Sequences keeps them for longer than releases are there.
type Sequences interface {
	// Hold has a release hold a Service for one more decision; the next sequence is
	// above the floor.
	Hold(ctx context.Context, service types.NamespacedName, release *v1alpha1.ABRelease, before uint64) (floor uint64, err error)
	// Keep has a release hold a Service for its effective split, in case an earlier record of
	// that is lost.
	Keep(ctx context.Context, service types.NamespacedName, release *v1alpha1.ABRelease, sequence uint64) error
	// Settle says that releases of that name are gone, but for the one with this uid.
	Settle(ctx context.Context, release types.NamespacedName) error
}

// Reconciler decides about one release after the other.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client    client.Client
	Endpoints Endpoints
	// Mesh is nil where something else than the proxies of a mesh carries splits out.
	Mesh    Mesh
	Routers Routers
	// Connectors are nil where the installation has no TrafficRouters.
	Connectors Connectors
	Sequences  Sequences
	// Revisions is nil where the installation carries out no rollouts.
	Revisions Revisions
	// Clones is nil where Revisions is.
	Clones Clones
	// Groups is nil where Revisions is.
	Groups Groups
	// Gates asks gates; nil where the installation has no gate.
	Gates Gates
	// Installation says which gates there are.
	Installation rollout.Installation
	// Orders reach all replicas without the API server; nil where there is no mesh.
	Orders Orders
	// Metrics tell of rollouts; may be nil.
	Metrics *RolloutMetrics
	// History keeps the last hour of runs; may be nil.
	History  *History
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Log      logr.Logger
	// Times are those of production unless they are set.
	Times Times

	written memory
}

// subject is one release, with the known facts and the decisions about it.
type subject struct {
	release *v1alpha1.ABRelease
	router  traffic.Router
	now     time.Time
	times   Times
	// rival is the release that divides the Service already, or contested, which is a group; nil without a rival.
	rival     *v1alpha1.ABRelease
	contested string
	// sharedCanary tells that an earlier release rolls out to the canary of this one; nil without such a release.
	sharedCanary error
	// groups are the groups of a release whose runs divide replicas.
	groups map[string]rollout.Arm
	// invalid says why the spec cannot be in force.
	invalid error
	facts   release.Facts
	// endpoints of each variation; nil if no endpoints are counted.
	endpoints map[string]traffic.Endpoints
	// mesh is the mesh as the split would make it.
	mesh     ir.Mesh
	decision release.Decision
	// rollout is nil for a release without stages, and for one of which no split is effective.
	rollout *rollout.Decision
	// cohort has the counts of the cohort check under way.
	cohort rollout.Cohort
	// ordered says that replicas carry out the prepared rollback already.
	ordered bool
	// selected is the variation that the Service selects by itself; empty without one.
	selected string
	// unknown says that the workload of a variation could not be read.
	unknown bool
	// tally has the metrics of the rollout, which are counted once the rollout is stored.
	tally rollout.Tally
	// analysis is nil while no run is on.
	analysis *analysis
	// gatesAgain is how soon gates make another look; 0 if they do not.
	gatesAgain time.Duration
	// seen is nil when no router was asked, or no router had an answer.
	seen *traffic.Observation
	// degraded has the reasons of the condition Degraded.
	degraded []condition.Degradation
}

// Reconcile looks at one release.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := r.subject(request.NamespacedName)
	if err := r.Client.Get(ctx, request.NamespacedName, s.release); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("reading release %s: %w", request, err)
		}
		r.written.forget(request.NamespacedName)
		r.forgetGates(request.NamespacedName)
		r.forgetClone(request.NamespacedName)
		r.Metrics.forget(request.NamespacedName)
		r.History.forget(request.Namespace, request.Name)
		r.forgetConnectors(request.NamespacedName)
		return reconcile.Result{}, errors.Join(s.router.Remove(ctx), r.Sequences.Settle(ctx, request.NamespacedName))
	}
	s.router = r.connect(ctx, s.release)
	steps := []func(context.Context, *subject) error{r.findRivals, r.readSpec, r.look, r.decide, r.observe, r.adopt, r.roll, r.order, r.askGates, r.raise, r.hold, r.write, r.askExecutor, r.letGo}
	if !s.release.Spec.HasRequests() {
		steps = r.groupSteps()
	}
	for _, step := range steps {
		if err := step(ctx, s); err != nil {
			return later(err)
		}
	}
	return reconcile.Result{RequeueAfter: s.again()}, nil
}

// subject returns a release without any known fact yet.
func (r *Reconciler) subject(name types.NamespacedName) *subject {
	return &subject{release: &v1alpha1.ABRelease{}, now: r.Clock.Now(), times: r.Times.withDefaults(), router: r.Routers.Router(name)}
}

// later looks again where that is all that helps.
func later(err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, discovery.ErrUnsynced):
		return reconcile.Result{RequeueAfter: unsyncedAgain}, nil
	case apierrors.IsConflict(err): // the cache is behind
		return reconcile.Result{RequeueAfter: conflictAgain}, nil
	}
	return reconcile.Result{}, err
}

// readSpec reads the spec, and checks that the cluster can carry it out.
func (r *Reconciler) readSpec(_ context.Context, s *subject) error {
	s.facts = release.Facts{Before: release.StateOf(s.release), Floor: r.written.taken(s.release), Now: s.now, Prepares: r.prepares(s, rollout.StateOf(&s.release.Status))}
	r.recall(s)
	terms, err := release.TermsOf(s.release)
	if err != nil {
		s.invalid = err
		return nil //nolint:nilerr // the status says it
	}
	terms = s.returnTerms(s.shiftTerms(terms))
	s.facts.Terms = &terms
	if split, is := s.facts.Prospect(); is {
		if s.invalid = s.router.Validate(split); s.invalid != nil {
			s.facts.Terms = nil
		}
	}
	return nil
}

// look counts the endpoints that are ready.
func (r *Reconciler) look(ctx context.Context, s *subject) error {
	split, is := s.facts.Prospect()
	if !is || s.rival != nil {
		return nil
	}
	counted, found, err := r.Endpoints.Count(ctx, split)
	if err != nil {
		return fmt.Errorf("counting the endpoints of Service %s/%s: %w", split.Namespace, split.Service, err)
	}
	switch {
	case r.Mesh != nil && s.release.Spec.UsesMesh():
		if s.mesh, err = r.Mesh.Prospect(ctx, split); err != nil {
			return fmt.Errorf("looking at Service %s/%s: %w", split.Namespace, split.Service, err)
		}
		service := s.service()
		if found = found && service != nil; found {
			s.facts.LabeledSince = service.LabeledSince
		}
	case !found:
		s.mesh.Problems = []ir.Problem{ir.NoService(split)}
	}
	if s.facts.Refused = !found; found {
		s.endpoints, s.facts.Ready = counted, map[string]int{}
		for _, v := range split.Variations {
			s.facts.Ready[v.Name] = counted[cmp.Or(v.ServedBy, v.Name)].Ready
		}
	}
	return nil
}

// serviceless says that the Service is not there.
func (s *subject) serviceless() bool {
	return slices.ContainsFunc(s.mesh.Problems, func(p ir.Problem) bool { return p.Reason == ir.ServiceNotFound })
}

// service of the mesh is nil when proxies do not divide it.
func (s *subject) service() *ir.Service {
	for i := range s.mesh.Services {
		if s.mesh.Services[i].Routing != nil {
			return &s.mesh.Services[i]
		}
	}
	return nil
}

// decide decides the effective split, with a sequence of the release.
func (r *Reconciler) decide(ctx context.Context, s *subject) error {
	if s.rival != nil {
		return nil
	}
	s.decision = release.Decide(s.facts)
	before := s.facts.Before.Last()
	service := types.NamespacedName{Namespace: s.release.Namespace, Name: s.release.Spec.ServiceName}
	if s.facts.Before == nil && s.serviceless() {
		s.decision = release.Decision{} // no proxy can have a sequence of a split that does not exist
		return nil
	}
	if !s.decision.Grew || s.decision.After.Split.Sequence == before { // the prepared split is held already
		r.keep(ctx, s, service, before)
		return nil
	}
	// A split that proxies have is held as if the release had decided it.
	floor, err := r.Sequences.Hold(ctx, service, s.release, max(before, s.facts.Ahead, s.facts.Floor))
	if full := (*release.FullError)(nil); errors.As(err, &full) && s.facts.Before == nil {
		s.invalid, s.decision = full, release.Decision{}
		return nil
	}
	if err != nil {
		return err
	}
	s.facts.Floor = max(s.facts.Floor, floor)
	s.decision = release.Decide(s.facts)
	return nil
}

// keep records that the release holds its Service. The effective split does not depend on
// the record.
func (r *Reconciler) keep(ctx context.Context, s *subject, service types.NamespacedName, sequence uint64) {
	if sequence == 0 {
		return // the release holds no Service
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.Sequences.Keep(ctx, service, s.release, sequence); err != nil {
		r.Log.Info("the sequences could not be looked at; it is tried again", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
	}
}

// again returns the time until the next look without a change before.
func (s *subject) again() time.Duration {
	var wait time.Duration
	switch {
	case !s.release.Spec.HasRequests():
		return s.groupsAgain()
	case s.decision.After == nil && (s.serviceless() || errors.As(s.invalid, new(*release.FullError))):
		return undecidedAgain
	case s.decision.After == nil:
		return 0 // something else has to change
	case s.decision.Grew:
		wait = toldAgain
	case !s.acknowledged():
		wait = unacknowledgedAgain
	default:
		wait = s.times.Acknowledged
	}
	if s.gatesAgain > 0 {
		wait = min(wait, s.gatesAgain)
	}
	if s.release.Spec.HasGroups() {
		wait = min(wait, s.groupsEvery())
	}
	for _, at := range []time.Time{s.decision.Again, s.rolloutAgain()} {
		if !at.IsZero() {
			wait = min(wait, max(at.Sub(s.now), time.Millisecond))
		}
	}
	return wait
}
