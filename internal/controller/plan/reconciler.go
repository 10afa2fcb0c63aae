// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

const (
	// workers carry plans on at the same time. How much is written at once is
	// bounded by the ledgers, not by this.
	workers = 4
	// atLeast is how soon a plan may be looked at again, and atMost how long it is
	// left alone: what it waits for may have happened unseen. A plan that waits behind
	// many others of its policy is left alone for as long as its turn is away.
	atLeast = 10 * time.Millisecond
	atMost  = 30 * time.Second
	// unwatched is how soon a target is looked at again of which no watch tells.
	unwatched = 5 * time.Second
)

// Carrier carries one plan on; *exec.Executor is one.
type Carrier interface {
	Carry(ctx context.Context, key types.NamespacedName) (exec.Outcome, error)
}

// TargetWatcher watches targets.
type TargetWatcher interface {
	// Watch has these targets of a plan watched from now on, and no others of that plan: a
	// change wakes the plan. It says whether a watch of each of them is under way.
	Watch(plan types.NamespacedName, targets []exec.Sighting) (watched bool)
}

// Reconciler has plans carried on.
type Reconciler struct {
	Executor Carrier
	Targets  TargetWatcher
	// Cached reads plans from the cache, to wake them; nothing is decided by it.
	Cached client.Reader
	Time   exec.Time
	// AssessesEffects says that Cached has EffectivenessAssessments, whose end wakes their plan.
	AssessesEffects bool
}

// Reconcile carries one plan on.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	outcome, err := r.Executor.Carry(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("carrying plan %s out: %w", request.NamespacedName, err)
	}
	watched := r.Targets.Watch(request.NamespacedName, outcome.Watch)
	if outcome.Done {
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).V(1).Info("the plan waits", "why", outcome.Why, "until", outcome.Until)
	return reconcile.Result{RequeueAfter: r.after(outcome.Until, r.latest(ctx, request, watched))}, nil
}

// latest returns how long a plan may be left alone.
func (r *Reconciler) latest(ctx context.Context, plan reconcile.Request, watched bool) time.Duration {
	if !watched {
		return unwatched
	}
	return max(atMost, r.turnOf(ctx, plan))
}

// after returns when a plan is looked at again that waits until a time, or for an event.
func (r *Reconciler) after(until time.Time, latest time.Duration) time.Duration {
	if until.IsZero() {
		return latest
	}
	return min(max(until.Sub(r.Time.Now()), atLeast), latest)
}

// Source is a kind, and which plans a change of it wakes.
type Source struct {
	Kind client.Object
	Wake Wake
	// When are the changes that do.
	When []predicate.Predicate
}

// Sources are the kinds that wake plans, beside plans themselves.
func (r *Reconciler) Sources() []Source {
	specs := []predicate.Predicate{Specs()}
	sources := []Source{
		{&v1alpha1.RemediationPolicy{}, r.ofPolicy, specs},
		// A place that was given back is news to whoever waits for one.
		{&v1alpha1.RemediationLedger{}, r.all, nil},
		{&v1alpha1.SpecGuard{}, r.all, specs},
		{&v1alpha1.ClusterSpecGuard{}, r.all, specs},
		{&v1alpha1.Environment{}, r.all, specs},
	}
	if r.AssessesEffects {
		sources = append(sources, Source{&v1alpha1.EffectivenessAssessment{}, r.ofAssessment, []predicate.Predicate{endedAssessments()}})
	}
	return sources
}

// Specs are changes of a spec. Its own status writes are no news to the executor.
func Specs() predicate.Predicate { return predicate.GenerationChangedPredicate{} }

// Register adds the controller to a manager; more wakes plans too.
func (r *Reconciler) Register(mgr ctrl.Manager, more source.Source) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("plan").For(&v1alpha1.RemediationPlan{}, builder.WithPredicates(Specs()))
	for _, s := range r.Sources() {
		b = b.Watches(s.Kind, byTurns(s.Wake), builder.WithPredicates(s.When...))
	}
	if err := b.WatchesRawSource(more).WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r); err != nil {
		return fmt.Errorf("registering the plan controller: %w", err)
	}
	return nil
}

func (r *Reconciler) ofPolicy(ctx context.Context, policy client.Object) []Turn {
	return takeNone(r.unfinished(ctx, func(p *v1alpha1.RemediationPlan) bool {
		return p.Spec.Plan.Policy.UID == string(policy.GetUID())
	}))
}

// all wakes every plan that waits, by turns. One that runs looks by itself soon enough, and
// waking it at each of its own writes to a ledger would only make it busy. A halt wakes each
// plan at once.
func (r *Reconciler) all(ctx context.Context, changed client.Object) []Turn {
	if l, ok := changed.(*v1alpha1.RemediationLedger); ok && l.Spec.Halt != nil {
		return takeNone(r.unfinished(ctx, func(*v1alpha1.RemediationPlan) bool { return true }))
	}
	return takeTurns(r.unfinished(ctx, func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Phase == v1alpha1.PlanDeferred || p.Status.DeferralReason != ""
	}))
}

// turnOf returns how long a plan that waits is behind the plans of its policy that wait for longer; 0 for a
// plan that does not wait.
func (r *Reconciler) turnOf(ctx context.Context, plan reconcile.Request) time.Duration {
	for _, turn := range r.all(ctx, nil) {
		if turn.Request == plan {
			return turn.After
		}
	}
	return 0
}

func (r *Reconciler) unfinished(ctx context.Context, wanted func(*v1alpha1.RemediationPlan) bool) []*v1alpha1.RemediationPlan {
	var plans v1alpha1.RemediationPlanList
	if err := r.Cached.List(ctx, &plans, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing plans to wake them")
		return nil
	}
	var found []*v1alpha1.RemediationPlan
	for i := range plans.Items {
		if p := &plans.Items[i]; !protocol.Final(p.Status.Phase) && wanted(p) {
			found = append(found, p)
		}
	}
	return found
}
