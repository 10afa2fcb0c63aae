// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/lag"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// settleTime is how long changes of Baselines are collected before the
	// guards are counted again.
	settleTime = 500 * time.Millisecond
	// countAgain is how often guards are counted without an event, because mass
	// drift and the health of watches change by time too.
	countAgain = time.Minute
	// countUnreadable is the same while a kind cannot be read. A count lists all
	// Baselines, and a tenant may name a kind that the assessor may not read.
	countUnreadable = 5 * time.Second
	// actionCount is what the assessor did when it made an event of a guard.
	actionCount = "CountDrift"
)

// Kinds tells how the watch of a kind does; *kube.Tracker does.
type Kinds interface {
	Health(schema.GroupVersionKind) kube.Health
}

// Status keeps the status of SpecGuards and ClusterSpecGuards.
type Status struct {
	Client client.Client
	// Informers hold the Baselines.
	Informers cache.Informers
	Clock     clock.PassiveClock
	Guards    *Controller
	Kinds     Kinds
	// StampedGroups are the groups that the installation stamps; a guard that
	// trusts another group is told so.
	StampedGroups []string
	// Enforcement looks after guards that deny.
	Enforcement *Enforcement
	// Recorder tells on the guard which mass drift began, and that all ended.
	Recorder events.EventRecorder
	Metrics  *MassDriftMetrics
	// ExceptionMetrics count SpecGuardExceptions; may be nil.
	ExceptionMetrics *ExceptionMetrics

	lags lag.Times

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Count asks to count again soon, because other guards are in force now.
func (c *Status) Count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.AddAfter(all, settleTime)
	}
}

func (c *Status) attach(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
	q.Add(all)
	return nil
}

// Register adds the controller to a manager.
func (c *Status) Register(mgr ctrl.Manager) error {
	later := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) { q.AddAfter(all, settleTime) }
	lazily := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("guard-status").
		Watches(&v1alpha1.Baseline{}, lazily).
		Watches(&v1alpha1.SpecGuard{}, lazily).
		Watches(&v1alpha1.ClusterSpecGuard{}, lazily).
		WatchesRawSource(source.Func(c.attach)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the guard status controller: %w", err)
	}
	return nil
}

// Reconcile counts every guard and writes each status that changed.
func (c *Status) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot := c.Guards.Snapshot()
	if snapshot == nil {
		return reconcile.Result{RequeueAfter: settleTime}, nil
	}
	counts, err := countBaselines(ctx, c.Informers)
	if err != nil {
		return reconcile.Result{}, err
	}
	written := round{again: c.again(snapshot)}
	failed := errors.Join(
		c.writeGuards(ctx, snapshot, counts.byGuard, &written),
		c.writeClusterGuards(ctx, snapshot, counts.byGuard, &written),
		c.writeExceptions(ctx, snapshot, counts.byException, &written),
	)
	c.Metrics.set(written.frozen)
	return reconcile.Result{RequeueAfter: written.again}, failed
}

// round is what one count of all guards has found, and when to count again.
type round struct {
	frozen frozenScopes
	again  time.Duration
}

func keyOf(ref specguard.GuardRef) string { return ref.Namespace + "/" + ref.Name }

// isNews says whether a status is to be stored now. The number of drifted objects alone waits: a
// repair moves it there and back.
func (c *Status) isNews(ref specguard.GuardRef, stored, next *v1alpha1.GuardStatus, counted *round) bool {
	drifted := *stored
	drifted.Drifted = next.Drifted
	switch {
	case equality.Semantic.DeepEqual(*stored, *next):
		c.lags.Forget(keyOf(ref))
		return false
	case !equality.Semantic.DeepEqual(drifted, *next):
		return true
	}
	left := c.lags.Left(keyOf(ref), c.Clock.Now())
	if left > 0 {
		counted.again = min(counted.again, left)
	}
	return left <= 0
}

// again says when to count without an event: soon while a kind is being listed, and
// later while a kind cannot be read, which may last.
func (c *Status) again(snapshot *guards.Snapshot) time.Duration {
	next := c.Enforcement.Again(countAgain)
	for gvk := range snapshot.Resources {
		switch health := c.Kinds.Health(gvk); {
		case health.Failure != nil:
			next = min(next, countUnreadable)
		case !health.Synced:
			return settleTime
		}
	}
	return next
}

func (c *Status) writeGuards(ctx context.Context, snapshot *guards.Snapshot, counts map[specguard.GuardRef]guards.Tally, counted *round) error {
	var list v1alpha1.SpecGuardList
	if err := c.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing guards: %w", err)
	}
	var failed []error
	for i := range list.Items {
		g := &list.Items[i]
		next := g.DeepCopy()
		ref := specguard.GuardRef{Namespace: g.Namespace, Name: g.Name}
		c.fill(&next.Status, g.Generation, ref, &g.Spec, snapshot, counts[ref])
		counted.frozen.add(next.Status.MassDrift)
		if !c.isNews(ref, &g.Status, &next.Status, counted) {
			continue
		}
		if err := c.Client.Status().Update(ctx, next); err != nil {
			failed = append(failed, fmt.Errorf("writing the status of guard %s/%s: %w", g.Namespace, g.Name, err))
			continue
		}
		c.lags.Forget(keyOf(ref))
		c.tellMassDrift(next, &g.Status, &next.Status)
	}
	return errors.Join(failed...)
}

func (c *Status) writeClusterGuards(ctx context.Context, snapshot *guards.Snapshot, counts map[specguard.GuardRef]guards.Tally, counted *round) error {
	var list v1alpha1.ClusterSpecGuardList
	if err := c.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing cluster guards: %w", err)
	}
	c.Enforcement.Missing(ctx, list.Items)
	var failed []error
	for i := range list.Items {
		g := &list.Items[i]
		next := g.DeepCopy()
		ref := specguard.GuardRef{Name: g.Name}
		c.fill(&next.Status, g.Generation, ref, &g.Spec.GuardSpec, snapshot, counts[ref])
		counted.frozen.add(next.Status.MassDrift)
		c.Enforcement.Observe(ctx, g, next, snapshot.Registered)
		if !c.isNews(ref, &g.Status, &next.Status, counted) {
			continue
		}
		if err := c.Client.Status().Update(ctx, next); err != nil {
			failed = append(failed, fmt.Errorf("writing the status of cluster guard %s: %w", g.Name, err))
			continue
		}
		c.lags.Forget(keyOf(ref))
		c.tellMassDrift(next, &g.Status, &next.Status)
	}
	return errors.Join(failed...)
}

// fill computes the status of one guard.
func (c *Status) fill(status *v1alpha1.GuardStatus, generation int64, ref specguard.GuardRef,
	spec *v1alpha1.GuardSpec, snapshot *guards.Snapshot, tally guards.Tally,
) {
	status.ObservedGeneration = generation
	status.Objects, status.Drifted, status.Unknown = tally.Objects, tally.Drifted, tally.Unknown
	conditions := condition.Set{Conditions: &status.Conditions, Generation: generation, Now: c.Clock.Now()}
	c.ready(conditions, ref, spec, snapshot, tally)
	c.suspension(conditions, spec)
	c.freeze(conditions, status, tally)
}

func (c *Status) ready(conditions condition.Set, ref specguard.GuardRef, spec *v1alpha1.GuardSpec, snapshot *guards.Snapshot, tally guards.Tally) {
	if _, known := snapshot.Refs[ref]; !known {
		conditions.Reconciling("NotCompiled", "the guard is not active yet")
		return
	}
	failing := c.failing(spec, snapshot)
	if problems := snapshot.Problems[ref]; len(problems) > 0 {
		text := guards.FormatProblems(problems)
		if failing != "" {
			text += "; " + failing
		}
		conditions.Stalled("NotActive", text)
		return
	}
	if failing != "" {
		conditions.Reconciling("NotReadable", failing)
		return
	}
	if until := suspendedUntil(spec); until.After(c.Clock.Now()) {
		conditions.NotReady("Suspended", fmt.Sprintf("until %s: %s", until.UTC().Format(time.RFC3339), spec.Suspend.Reason))
		return
	}
	if others := snapshot.OtherVersions[ref]; len(others) > 0 {
		conditions.NotReady("OtherVersion", guards.FormatProblems(others))
		return
	}
	message := "in force"
	if tally.Unknown > 0 {
		message += fmt.Sprintf("; the state of %d of %d objects is Unknown, their Baselines say why", tally.Unknown, tally.Objects)
	}
	if unstamped := c.unstamped(spec); len(unstamped) > 0 {
		message += "; the installation does not stamp these trusted groups, so they do not count: " + strings.Join(unstamped, ", ")
	}
	conditions.Ready("Active", message)
}

// suspension says when a suspension is over, which the API server's expressions
// cannot tell for want of a clock.
func (c *Status) suspension(conditions condition.Set, spec *v1alpha1.GuardSpec) {
	switch until := suspendedUntil(spec); {
	case spec.Suspend == nil:
		conditions.False(v1alpha1.ConditionSuspended, "NotSuspended", "spec.suspend is unset")
	case until.After(c.Clock.Now()):
		conditions.True(v1alpha1.ConditionSuspended, "Suspended", fmt.Sprintf("until %s: %s", until.UTC().Format(time.RFC3339), spec.Suspend.Reason))
	default:
		conditions.False(v1alpha1.ConditionSuspended, "Over", "the suspension ended at "+until.UTC().Format(time.RFC3339))
	}
}

// failing names each kind that cannot be read, or else the first kind that is not listed
// yet. Kinds that are served nowhere are problems of the snapshot.
func (c *Status) failing(spec *v1alpha1.GuardSpec, snapshot *guards.Snapshot) string {
	var failing []string
	listed := ""
	for _, r := range specguard.ListResources(spec) {
		resource, served := snapshot.FindJudgedVersion(r.GuardedResource)
		if !served {
			continue
		}
		health := c.Kinds.Health(resource.GVK)
		switch {
		case health.Failure != nil:
			failing = append(failing, fmt.Sprintf("%s: %s cannot be read: %v", r.Path, r.Kind, health.Failure))
		case !health.Synced && listed == "":
			listed = fmt.Sprintf("%s: %s is being listed", r.Path, r.Kind)
		}
	}
	if len(failing) > 0 {
		return strings.Join(failing, "; ")
	}
	return listed
}

// unstamped lists trusted groups that nothing will prove later. Groups of
// service accounts follow from the user name and need no stamp.
func (c *Status) unstamped(spec *v1alpha1.GuardSpec) []string {
	groups := slices.Clone(spec.TrustedWriters.Groups)
	for i := range spec.ExpectedWriters {
		groups = append(groups, spec.ExpectedWriters[i].Writers.Groups...)
	}
	slices.Sort(groups)
	return slices.DeleteFunc(slices.Compact(groups), func(g string) bool {
		return slices.Contains(c.StampedGroups, g) || specguard.IsServiceAccountGroup(g)
	})
}

func suspendedUntil(spec *v1alpha1.GuardSpec) time.Time {
	if spec.Suspend == nil {
		return time.Time{}
	}
	return spec.Suspend.EndTime.Time
}
