// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// ClusterLedger is the ledger that bounds all Environments together.
const ClusterLedger = "plumbline-cluster"

// Mirror is the copy of the ledgers in Redis. It may refuse; what it does not
// know, or cannot say, is no refusal.
type Mirror interface {
	// Ask says whether the copy refuses a step.
	Ask(ctx context.Context, l *v1alpha1.RemediationLedger, r ledger.Request, rules ledger.Rules) (refusal ledger.Gate, refused bool)
	// Put tells the copy what was stored.
	Put(ctx context.Context, l *v1alpha1.RemediationLedger)
}

// carryLedgers makes the calls that are about places in the ledgers.
func (r *run) carryLedgers(ctx context.Context, effect protocol.Effect) {
	switch x := effect.(type) {
	case protocol.AskMirror:
		place := r.askMirror(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Mirror = &place })
	case protocol.Reserve:
		place := r.reserve(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Place = &place })
	case protocol.Settle:
		r.recordBeforehand(ctx, x.Step)
		err := r.settle(ctx, x.Step, x.Outcome)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Settled = known(err) })
	case protocol.Release:
		r.recordBeforehand(ctx, x.Step)
		err := r.release(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Settled = known(err) })
	}
}

func (r *run) request(step int32) ledger.Request {
	target := r.target(step)
	uid := target.UID
	if uid == "" { // it is to be made again, and has none yet
		uid = r.plan.Namespace + "." + target.BaselineName
	}
	return ledger.Request{
		Step: r.reference(step), PolicyUID: r.plan.Spec.Plan.Policy.UID, TargetUID: uid[:min(len(uid), 128)],
		Epoch: r.plan.Status.Epoch,
	}
}

// place is one ledger and the rules by which it grants.
type place struct {
	name  string
	rules ledger.Rules
}

// places are the cluster's ledger and the Environment's, in the order in which
// they are asked.
func (r *run) places() []place {
	return []place{{ClusterLedger, ledger.Rules{All: r.Caps}}, {r.plan.Spec.Plan.EnvironmentName, r.rules()}}
}

// rules are the limits of the plan's policy, and of its Environment.
func (r *run) rules() ledger.Rules {
	var rules ledger.Rules
	if r.policy != nil {
		rules.Policy = PolicyLimits(&r.policy.Spec.Safety)
		rules.Policy.VerdictTimeout = r.verdictTimeout(&r.policy.Spec)
	}
	if r.environment != nil {
		caps := r.environment.Spec.Caps
		rules.All = ledger.Caps{Concurrent: caps.MaxConcurrent, PerHour: caps.MaxPerHour, PerDay: caps.MaxPerDay}
	}
	return rules
}

// PolicyLimits are a policy's limits as a ledger counts them.
func PolicyLimits(s *v1alpha1.RemediationSafety) ledger.Limits {
	limits := ledger.Limits{
		Caps:             ledger.Caps{Concurrent: &s.MaxConcurrent, PerHour: &s.MaxPerHour, PerDay: &s.MaxPerDay},
		FailureThreshold: s.CircuitBreaker.FailureThreshold,
	}
	if s.Cooldown != nil {
		limits.Cooldown = s.Cooldown.Duration
	}
	if s.CircuitBreaker.OpenDuration != nil {
		limits.OpenDuration = s.CircuitBreaker.OpenDuration.Duration
	}
	return limits
}

// askMirror asks the copy of each ledger. It is asked before the ledgers, so that
// a limit that is known to be reached costs no write.
func (r *run) askMirror(ctx context.Context, step int32) protocol.Place {
	open := protocol.Place{Granted: protocol.Yes}
	if r.Mirror == nil {
		return open
	}
	for _, p := range r.places() {
		l, err := r.readLedger(ctx, p.name)
		if err != nil {
			return open // the ledgers themselves will say
		}
		if ledger.Find(&l.Status, r.reference(step)) != nil {
			continue // it was granted before
		}
		if gate, refused := r.Mirror.Ask(ctx, l, r.request(step), p.rules); refused {
			return r.refused(ctx, step, p.name, gate)
		}
	}
	return open
}

func refusal(ledgerName string, gate ledger.Gate) string {
	return fmt.Sprintf("%s: %s (ledger %s)", gate.Name, gate.Message, ledgerName)
}

// refused gives the place in the cluster's ledger back, which a run before this one may
// have taken: a plan that waits keeps no other plan from acting. It returns the refusal.
func (r *run) refused(ctx context.Context, step int32, by string, gate ledger.Gate) protocol.Place {
	if err := r.releaseIn(ctx, ClusterLedger, step); err != nil {
		return protocol.Place{Granted: protocol.Unknown, Refusal: err.Error()}
	}
	return protocol.Place{Granted: protocol.No, Refusal: refusal(by, gate), Until: gate.Until}
}

// reserve asks both ledgers for a place, the cluster's first.
func (r *run) reserve(ctx context.Context, step int32) protocol.Place {
	places := r.places()
	// What the Environment refuses needs no place in the cluster: a plan that waits
	// for an hour asks again and again, and should write nothing.
	gate, err := r.refusedBy(ctx, places[1], step)
	switch {
	case err != nil:
		return protocol.Place{Granted: protocol.Unknown, Refusal: err.Error()}
	case gate != nil:
		return r.refused(ctx, step, places[1].name, *gate)
	}
	for _, p := range places {
		verdict, err := r.reserveIn(ctx, p, step)
		switch {
		case err != nil:
			return protocol.Place{Granted: protocol.Unknown, Refusal: err.Error()}
		case verdict.Granted:
			continue
		case verdict.Entry != nil:
			return protocol.Place{Granted: protocol.No, Ended: true}
		}
		return r.refused(ctx, step, p.name, verdict.Refused)
	}
	return protocol.Place{Granted: protocol.Yes}
}

// refusedBy reads which gate of a ledger would refuse a step, or nil; it writes nothing. That a
// ledger refuses only a ledger shows that is read now.
func (r *run) refusedBy(ctx context.Context, p place, step int32) (*ledger.Gate, error) {
	if l := r.looked(p.name); l != nil {
		if _, verdict := ledger.Reserve(&l.Status, r.request(step), p.rules, r.Time.Now()); verdict.Granted {
			return nil, nil //nolint:nilnil // no gate refuses
		}
	}
	l, err := r.readLedger(ctx, p.name)
	if err != nil {
		return nil, err
	}
	if _, verdict := ledger.Reserve(&l.Status, r.request(step), p.rules, r.Time.Now()); !verdict.Granted && verdict.Entry == nil {
		return &verdict.Refused, nil
	}
	return nil, nil //nolint:nilnil // no gate refuses
}

func (r *run) reserveIn(ctx context.Context, p place, step int32) (verdict ledger.Verdict, err error) {
	err = r.changePlaces(ctx, p.name, func(s *ledger.Status) *ledger.Status {
		var next *ledger.Status
		next, verdict = ledger.Reserve(s, r.request(step), p.rules, r.Time.Now())
		return next
	})
	return verdict, err
}

// settle tells both ledgers how a step ended, the cluster's last.
func (r *run) settle(ctx context.Context, step int32, outcome v1alpha1.LedgerOutcome) error {
	for _, p := range slices.Backward(r.places()) {
		err := r.changePlaces(ctx, p.name, func(s *ledger.Status) *ledger.Status {
			next, _ := ledger.Settle(s, r.reference(step), outcome, r.Time.Now())
			return next
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// release gives the place of a step that wrote nothing back, the cluster's last.
func (r *run) release(ctx context.Context, step int32) error {
	for _, p := range slices.Backward(r.places()) {
		if err := r.releaseIn(ctx, p.name, step); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) releaseIn(ctx context.Context, ledgerName string, step int32) error {
	return r.changePlaces(ctx, ledgerName, func(s *ledger.Status) *ledger.Status {
		next, _ := ledger.Release(s, r.reference(step), r.plan.Status.Epoch)
		return next
	})
}

// changePlaces changes the places of a ledger. A head that is still to be kept is kept by the
// same write, unless it contradicts the ledger: then the next status is not stored.
func (r *run) changePlaces(ctx context.Context, name string, how func(*ledger.Status) *ledger.Status) error {
	chain, kept := r.plan.Spec.Plan.Policy.UID, evidence.Head{}
	stored, err := r.changeFrom(ctx, r.looked(name), name, func(s *ledger.Status) *ledger.Status {
		next := how(s)
		kept = evidence.Head{}
		left := r.Evidence.unkept(chain)
		if len(left) == 0 || next == s || name != r.plan.Spec.Plan.EnvironmentName || contradicts(s, chain, left) != nil {
			return next
		}
		if head := left[len(left)-1]; putHead(next, chain, head) {
			kept = head
		}
		return next
	})
	if err != nil {
		return err
	}
	r.ledgers[name] = stored
	if kept != (evidence.Head{}) {
		r.Evidence.noteKept(chain, kept)
	}
	return nil
}

// looked returns a ledger as this run has seen it last, where that is enough to write it; else
// nil. The write is bound to that version.
func (r *run) looked(name string) *v1alpha1.RemediationLedger {
	l := r.ledgers[name]
	if l == nil || l.Status.Sequence == 0 || l.Spec.Scope != scopeOf(name) || l.Spec.Override != nil {
		return nil
	}
	if name != ClusterLedger && (r.environment == nil || r.environment.Name != name || r.environment.Status.LedgerUID != string(l.UID)) {
		return nil
	}
	return l
}

// change writes a ledger's status as one compare-and-swap, and tries again when
// somebody else was faster.
func (e *Executor) change(ctx context.Context, name string, how func(*ledger.Status) *ledger.Status) error {
	_, err := e.changeFrom(ctx, nil, name, how)
	return err
}

// changeFrom is change that begins with a ledger as it was read before, or reads it where there
// is none. It returns the ledger as it is stored now. That nothing is to be changed only a
// ledger shows that is read now: one that was read before may be behind.
func (e *Executor) changeFrom(ctx context.Context, before *v1alpha1.RemediationLedger, name string, how func(*ledger.Status) *ledger.Status) (*v1alpha1.RemediationLedger, error) {
	for range conflictTries {
		l := before.DeepCopy()
		if before == nil {
			var err error
			if l, err = e.readLedger(ctx, name); err != nil {
				return nil, err
			}
		}
		next := how(&l.Status)
		if next == &l.Status {
			if before == nil {
				return l, nil
			}
			before = nil
			continue
		}
		before = nil
		l.Status = *next
		err := e.Client.Status().Update(ctx, l, client.FieldOwner(FieldManager))
		switch {
		case err == nil:
			if e.Mirror != nil {
				e.Mirror.Put(ctx, l)
			}
			e.Observer.LedgerStored(l)
			return l, nil
		case !apierrors.IsConflict(err):
			return nil, fmt.Errorf("writing ledger %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("writing ledger %s: another writer was faster %d times", name, conflictTries)
}

// readLedger reads a ledger, and makes and begins it if need be.
func (e *Executor) readLedger(ctx context.Context, name string) (*v1alpha1.RemediationLedger, error) {
	l := &v1alpha1.RemediationLedger{}
	err := e.Client.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name}, l)
	switch {
	case apierrors.IsNotFound(err):
		return e.makeLedger(ctx, name)
	case err != nil:
		return nil, fmt.Errorf("reading ledger %s: %w", name, err)
	}
	return e.begun(ctx, l)
}

// readHalts reads both ledgers beside each other. It returns a person's word in one of them that
// everything stops, or nil, and the ledgers as they were read.
func (r *run) readHalts(ctx context.Context, from client.Reader) (*v1alpha1.LedgerHalt, map[string]*v1alpha1.RemediationLedger, error) {
	var group sync.WaitGroup
	var reads []*reading[*v1alpha1.RemediationLedger]
	for _, p := range r.places() {
		reads = append(reads, begin(&group, func() (*v1alpha1.RemediationLedger, error) { return r.peek(ctx, from, p.name) }))
	}
	group.Wait()
	ledgers := map[string]*v1alpha1.RemediationLedger{}
	for _, read := range reads {
		l := read.value
		if read.err != nil || l.Spec.Halt != nil {
			return haltIn(l), nil, read.err
		}
		ledgers[l.Name] = l
	}
	return nil, ledgers, nil
}

func haltIn(l *v1alpha1.RemediationLedger) *v1alpha1.LedgerHalt {
	if l == nil {
		return nil
	}
	return l.Spec.Halt
}

// peek reads a ledger, and makes none: what is not there is empty.
func (r *run) peek(ctx context.Context, from client.Reader, name string) (*v1alpha1.RemediationLedger, error) {
	l := &v1alpha1.RemediationLedger{}
	err := from.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, l)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ledger %s: %w", name, err)
	}
	return l, nil
}
