// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// FieldManager names the executor in managedFields.
const FieldManager = repair.FieldManager

// maxEffects bounds one run, so that a mistake cannot turn it into a storm of
// requests; a plan of ten targets needs fewer than two hundred.
const maxEffects = 500

// Time is what the executor knows of the time.
type Time interface {
	// Now is the API server's time.
	Now() time.Time
	// Skew is how far the own clock is ahead of it, or window.SkewUnknown.
	Skew() time.Duration
}

// Observer is told what happens; it decides nothing and must not wait.
type Observer interface {
	// Stored is told of every status that was stored, with the one before it.
	Stored(plan *v1alpha1.RemediationPlan, before *v1alpha1.RemediationPlanStatus)
	// Ended is told of every plan that has ended, at least once: again until the status says
	// that the end is announced.
	Ended(plan *v1alpha1.RemediationPlan)
	// Assessed is told of the verdict on each step, at least once: again until the status of the
	// plan has the verdict.
	Assessed(plan *v1alpha1.RemediationPlan, step int32, effect *v1alpha1.StepEffect)
	// LedgerStored is told of every state of a ledger that was stored.
	LedgerStored(l *v1alpha1.RemediationLedger)
}

// Executor carries plans out. All fields but Cached, Assessments, Rollouts, Mesh, Standbys and Mirror are needed.
type Executor struct {
	// Client must read live: no cache.
	Client client.Client
	// Cached answers a plan that only waits; nil when there is no cache, and then each look
	// is live. No step begins and no step writes by what a cache says.
	Cached client.Reader
	// Assessments reads EffectivenessAssessments, which a cache may do; nil where no effect is
	// assessed, and then the end of a step turns its breaker.
	Assessments client.Reader
	// Targets sends and reads guarded objects, byte for byte.
	Targets Targets
	Kinds   Kinds
	Guards  Guards
	// Rollouts tells which runs of releases hold targets; nil where there are no rollouts.
	Rollouts Rollouts
	// Mesh tells what stands against a quarantine; nil where there are no proxies.
	Mesh Mesh
	// Standbys read and write standbys; nil where there are no proxies.
	Standbys Standbys
	Bodies   Bodies
	// Mirror may refuse; nil when there is no Redis.
	Mirror   Mirror
	Evidence *Recorder
	Observer Observer
	Time     Time
	// Namespace is Plumbline's own, where the ledgers are.
	Namespace string
	// Holder is this process among all that ever ran.
	Holder string
	// Caps bound what is granted in the whole cluster.
	Caps ledger.Caps
	// Zones finds time zones; nil is time.LoadLocation.
	Zones window.ZoneLoader
}

// Outcome of a run.
type Outcome struct {
	// Done says that nothing is left to do for the plan, ever.
	Done bool
	// Until is when to carry on; zero when something has to happen first.
	Until time.Time
	// Why it waits, for people.
	Why string
	// Watch are the targets of which a change ends the wait.
	Watch []Sighting
}

// Sighting is a target in the version in which it was read last.
type Sighting struct {
	Reference
	ResourceVersion string
}

// run is what is known during one run, and forgotten after it.
type run struct {
	*Executor
	plan  *v1alpha1.RemediationPlan
	facts protocol.Facts
	// policy and the rest are as the last look found them.
	policy      *v1alpha1.RemediationPolicy
	environment *v1alpha1.Environment
	guards      GuardView
	budgets     budgets
	steps       map[int32]*material
	// ledgers are those of the last look, or as this run has stored them since.
	ledgers map[string]*v1alpha1.RemediationLedger
	// noted says that there is a record whose head may not be kept yet.
	noted bool
	// before is the status that is stored, while the plan is ahead of it by one that passes; else nil.
	before *v1alpha1.RemediationPlanStatus
}

// Carry carries one plan on as far as it goes now. An error means that nothing is
// known for certain; call again.
func (e *Executor) Carry(ctx context.Context, key types.NamespacedName) (Outcome, error) {
	r, err := e.begin(ctx, key)
	if err != nil || r == nil {
		return Outcome{Done: true}, err
	}
	for range maxEffects {
		effect := r.next()
		switch x := effect.(type) {
		case protocol.Done:
			return Outcome{Done: true}, r.withdraw(ctx)
		case protocol.Wait:
			return Outcome{Until: x.Until, Why: x.Why, Watch: r.awaited()}, r.explainWaiting(ctx, x.Why)
		case protocol.WriteStatus:
			if x.Passing {
				r.hold(&x)
				continue
			}
			again, err := r.writeStatus(ctx, x)
			if err != nil || again {
				return Outcome{Until: e.Time.Now(), Why: overtaken}, err
			}
		default:
			again, err := r.isOvertaken(ctx, effect)
			if err == nil && !again {
				err = r.carry(ctx, effect)
			}
			if again || err != nil {
				return Outcome{Until: e.Time.Now(), Why: overtaken}, err
			}
		}
		if ctx.Err() != nil { // the lease may be lost: nothing more is sent
			return Outcome{}, ctx.Err()
		}
	}
	return Outcome{Until: e.Time.Now().Add(time.Minute), Why: "too much happened at once"}, nil
}

// begin reads a plan; nil when it is gone.
func (e *Executor) begin(ctx context.Context, key types.NamespacedName) (*run, error) {
	r := &run{Executor: e, plan: &v1alpha1.RemediationPlan{}, steps: map[int32]*material{}, ledgers: map[string]*v1alpha1.RemediationLedger{}}
	err := e.Client.Get(ctx, key, r.plan)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err != nil {
		return nil, fmt.Errorf("reading plan %s: %w", key, err)
	}
	return r, nil
}

// next is what is to be done next. A status that passes is stored before an effect that another
// executor would have to know of, and before a wait.
func (r *run) next() protocol.Effect {
	effect := protocol.Next(r.state())
	if _, writes := effect.(protocol.WriteStatus); r.before != nil && !writes && !protocol.Precedes(effect) {
		return protocol.WriteStatus{Status: *r.plan.Status.DeepCopy()}
	}
	return effect
}

// hold goes on from a status that is stored with the next one.
func (r *run) hold(x *protocol.WriteStatus) {
	r.before = r.stored().DeepCopy()
	r.plan = r.plan.DeepCopy()
	r.plan.Status = x.Status
	r.forget(x.Forget)
}

// overtaken is the reason to read all again.
const overtaken = "another writer changed the plan"

// isOvertaken says that the plan was written while a status that passes was held. It is asked with the
// other brakes: a person who brakes the plan writes it, and the store may hang after that.
func (r *run) isOvertaken(ctx context.Context, effect protocol.Effect) (bool, error) {
	if _, looks := effect.(protocol.Look); r.before == nil || !looks {
		return false, nil
	}
	var now v1alpha1.RemediationPlan
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(r.plan), &now)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading plan %s/%s: %w", r.plan.Namespace, r.plan.Name, err)
	}
	return now.ResourceVersion != r.plan.ResourceVersion, nil
}

// stored is the status of the plan as it is stored.
func (r *run) stored() *v1alpha1.RemediationPlanStatus {
	if r.before != nil {
		return r.before
	}
	return &r.plan.Status
}

// forget forgets facts that a status outdates.
func (r *run) forget(what protocol.Forget) {
	r.facts = r.facts.Without(what)
	for _, step := range what.Steps {
		delete(r.steps, step)
	}
}

// awaited returns the targets that were written, and are not healthy yet.
func (r *run) awaited() []Sighting {
	var targets []Sighting
	for i := range r.plan.Status.Steps {
		step := &r.plan.Status.Steps[i]
		if m := r.steps[step.Index]; step.State == v1alpha1.StepApplied && m != nil && m.raw != nil {
			targets = append(targets, Sighting{r.ref(step.Index), m.metadata.ResourceVersion})
		}
	}
	return targets
}

func (r *run) state() *protocol.State {
	return &protocol.State{
		Plan: r.plan, Holder: r.Holder, Facts: r.facts, Health: r.health(), AssessesEffects: r.Assessments != nil,
		Now: r.Time.Now(), TimeUnknown: r.Time.Skew() == window.SkewUnknown,
	}
}

// writeStatus stores a status; again says that another writer changed the plan
// meanwhile, and everything has to be read anew.
func (r *run) writeStatus(ctx context.Context, x protocol.WriteStatus) (again bool, err error) {
	if err = r.decided(ctx, &x.Status); err == nil && namesRecord(&x.Status) {
		err = r.keepNoted(ctx)
	}
	if err != nil {
		return false, errors.Join(err, r.explainUnrecorded(ctx, err))
	}
	if reason := x.Status.DeferralReason; strings.HasPrefix(reason, unrecorded) || strings.HasPrefix(reason, waiting) {
		x.Status.DeferralReason = "" // it goes on
	}
	if again, err = r.put(ctx, &x.Status); again || err != nil {
		return again, err
	}
	r.forget(x.Forget)
	return false, nil
}

// put stores a status. The heads of all records that the status names are kept by then.
func (r *run) put(ctx context.Context, status *v1alpha1.RemediationPlanStatus) (again bool, err error) {
	next, before := r.plan.DeepCopy(), r.stored().DeepCopy()
	next.Status = *status
	setConditions(next, r.Time.Now())
	// An update is a PUT, which is bound to uid and resourceVersion.
	err = r.Client.Status().Update(ctx, next, client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("storing the status of plan %s/%s: %w", next.Namespace, next.Name, err)
	}
	r.plan, r.before = next, nil
	r.Observer.Stored(next, before)
	return false, nil
}

// carry makes the one call of an effect, and learns what came of it. Errors are
// only those after which the run makes no sense.
func (r *run) carry(ctx context.Context, effect protocol.Effect) error {
	switch x := effect.(type) {
	case protocol.Look:
		brakes := r.lookAt(ctx, x.Idle)
		r.facts.Brakes = &brakes
	case protocol.AskStore:
		store := r.askStore(ctx)
		r.facts.Store = &store
	case protocol.Announce:
		r.Observer.Ended(r.plan)
		r.facts.Announced = true
	case protocol.Authorize:
		answer, denied := r.authorize(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Authorized, f.Denied = answer, denied })
	case protocol.ClaimTarget:
		answer, by := r.claim(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Claimed, f.ClaimedBy = answer, by })
	case protocol.ReleaseTarget:
		answer := r.unclaim(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Let = answer })
	case protocol.ReadAssessment, protocol.RecordAssessment, protocol.ApplyVerdict, protocol.AnnounceEffect:
		r.carryVerdict(ctx, effect)
	case protocol.AskMirror, protocol.Reserve, protocol.Settle, protocol.Release:
		r.carryLedgers(ctx, effect)
	case protocol.ReadTarget, protocol.LoadRevision, protocol.Try, protocol.WriteTarget, protocol.FenceTarget, protocol.ReturnFields:
		r.carryTarget(ctx, effect)
	case protocol.CarryStandby:
		r.carryStandby(ctx, x)
	case protocol.Record:
		answer, stored := r.record(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Recorded, f.Evidence = answer, stored })
	default:
		return fmt.Errorf("carrying out %T: there is no handler", effect)
	}
	return nil
}

func (r *run) learn(step int32, more func(*protocol.StepFacts)) { r.facts = r.facts.Learn(step, more) }

func (r *run) target(step int32) *v1alpha1.PlanTarget { return &r.plan.Spec.Plan.Targets[step] }

func (r *run) reference(step int32) ledger.Step {
	return ledger.Step{Namespace: r.plan.Namespace, PlanName: r.plan.Name, PlanUID: string(r.plan.UID), Step: step}
}

// known is Yes when there is no error, else Unknown.
func known(err error) protocol.Answer {
	if err != nil {
		return protocol.Unknown
	}
	return protocol.Yes
}
