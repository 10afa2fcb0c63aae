// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// executor is a process that carries the plan out.
type executor struct {
	w       *world
	holder  string
	facts   Facts
	plan    *v1alpha1.RemediationPlan
	version int
	// pending is an effect that was decided and not carried out yet: the process
	// may sleep in between for as long as it likes.
	pending Effect
	// waits says what it said when it last had nothing to do.
	waits string
	// seen are the standbys as they were read.
	seen map[int32]standby
}

func (e *executor) restart(holder string) { *e = executor{w: e.w, holder: holder} }

func (e *executor) read() {
	e.plan, e.version, e.facts, e.seen = e.w.plan.DeepCopy(), e.w.version, Facts{}, map[int32]standby{}
}

// decide asks for the next effect; it begins a new run when the last one ended.
func (e *executor) decide() {
	if e.plan == nil {
		e.read()
	}
	e.pending = Next(&State{
		Plan: e.plan, Holder: e.holder, Facts: e.facts, Now: e.w.now, Health: e.w.health,
	})
}

// fate says what happens to a message.
type fate int

const (
	fine fate = iota
	// unsent: it never arrives.
	unsent
	// unanswered: it arrives, and the answer is lost.
	unanswered
	// late: it arrives some time later, and nobody hears the answer.
	late
)

// carry carries the pending effect out.
func (e *executor) carry(f fate) {
	effect := e.pending
	e.pending, e.waits = nil, ""
	switch x := effect.(type) {
	case WriteStatus:
		e.writeStatus(x, f)
	case Wait:
		e.plan, e.waits = nil, x.Why
	case Done:
		e.plan, e.waits = nil, "done"
	case Look:
		e.facts.Brakes = &Brakes{Known: f == fine && !e.w.unread, Closed: e.w.closed, Halted: e.w.halted, HaltedBy: "root", Superseded: e.w.superseded, OutsideSchedule: true}
		if e.w.closesAt.After(e.w.now) {
			e.facts.Brakes.ClosesAt = e.w.closesAt
		} else if !e.w.closesAt.IsZero() {
			e.facts.Brakes.Closed = "the window is closed"
		}
	case Announce:
		e.w.announced++
		e.facts.Announced = true
	case AskStore:
		e.facts.Store = &Store{Ready: f == fine && !e.w.mute, Why: "evidence cannot be written"}
	case Reserve:
		e.reserve(x.Step, f)
	case CarryStandby:
		e.carryStandby(x, f)
	case WriteTarget:
		e.send(x.Step, f, false)
	case FenceTarget:
		e.send(x.Step, f, true)
	case Settle:
		e.tell(x.Step, f, func() {
			e.w.ledger, _ = ledger.Settle(e.w.ledger, e.entry(x.Step), x.Outcome, e.w.now)
		})
	case Release:
		e.tell(x.Step, f, func() { e.w.ledger, _ = ledger.Release(e.w.ledger, e.entry(x.Step), e.plan.Status.Epoch) })
	default:
		e.ask(effect, f)
	}
}

func (e *executor) entry(step int32) ledger.Step {
	return ledger.Step{Namespace: "shop", PlanName: "plan", PlanUID: string(e.plan.UID), Step: step}
}

func (e *executor) writeStatus(x WriteStatus, f fate) {
	stored := f != unsent && e.w.store(e.version, &x.Status)
	if !stored || f != fine {
		e.plan = nil
		return
	}
	e.plan, e.version = e.w.plan.DeepCopy(), e.w.version
	e.facts = e.facts.Without(x.Forget)
}

func (e *executor) learn(step int32, more func(*StepFacts)) { e.facts = e.facts.Learn(step, more) }

func answer(f fate) Answer {
	if f == fine {
		return Yes
	}
	return Unknown
}

func (e *executor) reserve(step int32, f fate) {
	place := Place{Granted: Unknown}
	if f != unsent {
		next, verdict := ledger.Reserve(e.w.ledger, ledger.Request{Step: e.entry(step), PolicyUID: "policy", TargetUID: fmt.Sprint("target-", step), Epoch: e.plan.Status.Epoch}, e.w.rules, e.w.now)
		e.w.ledger = next
		if f == fine {
			place = Place{Granted: No, Ended: verdict.Entry != nil && !verdict.Granted, Refusal: verdict.Refused.Message, Until: verdict.Refused.Until}
			if verdict.Granted {
				place.Granted = Yes
			}
		}
	}
	e.learn(step, func(s *StepFacts) { s.Place = &place })
}

func (e *executor) tell(step int32, f fate, do func()) {
	if f != unsent {
		do()
	}
	e.learn(step, func(s *StepFacts) { s.Settled = answer(f) })
}

// send sends a write of the target, bound as the stored intent says, or a fence,
// bound to what was read.
func (e *executor) send(step int32, f fate, fence bool) {
	status := &e.plan.Status.Steps[step]
	r := request{
		step: step, uid: status.Intent.UID, version: status.Intent.ResourceVersion, fence: fence,
		action: e.plan.Spec.Plan.Targets[step].Action, token: Token(e.plan, step), sent: e.w.now,
		notAfter: NotAfter(status.Intent.StorageTime.Time),
	}
	if fence {
		r.uid, r.version = e.facts.Of(step).Target.UID, e.facts.Of(step).Target.ResourceVersion
	}
	result := Write{Result: Lost}
	switch f {
	case fine:
		result = e.w.arrive(r)
	case unanswered:
		e.w.arrive(r)
	case late:
		e.w.delayed = append(e.w.delayed, r)
	case unsent:
	}
	e.learn(step, func(s *StepFacts) {
		if fence {
			s.FencedBy(result)
			return
		}
		s.Wrote(result)
	})
}

func (e *executor) ask(effect Effect, f fate) {
	switch x := effect.(type) {
	case Authorize:
		e.learn(x.Step, func(s *StepFacts) { s.Authorized = answer(f) })
	case ClaimTarget:
		e.hold(x.Step, f, true)
		e.learn(x.Step, func(s *StepFacts) { s.Claimed = answer(f) })
	case AskMirror:
		e.learn(x.Step, func(s *StepFacts) { s.Mirror = &Place{Granted: answer(f)} })
	case ReadTarget:
		e.learn(x.Step, func(s *StepFacts) { s.Target = e.w.reading(x.Step, f) })
	case LoadRevision:
		e.learn(x.Step, func(s *StepFacts) {
			if s.Revision = answer(f); f == fine && e.w.damaged {
				s.Revision = No
			}
		})
	case Try:
		e.learn(x.Step, func(s *StepFacts) { s.Tried = e.dryRun(x.Step, s.Target, f) })
	case Record:
		if f != unsent {
			e.w.records[x.Step] = true
		}
		e.learn(x.Step, func(s *StepFacts) {
			s.Recorded, s.Evidence = answer(f), &v1alpha1.StepEvidence{Sequence: 1, Digest: "sha256:record"}
		})
	case ReleaseTarget:
		e.hold(x.Step, f, false)
		e.learn(x.Step, func(s *StepFacts) { s.Let = answer(f) })
	default:
		e.w.breaks("an effect without a handler: %T", effect)
	}
}

// hold takes the claim of a Baseline, or gives the claim back.
func (e *executor) hold(step int32, f fate, held bool) {
	if o := e.w.objects[step]; f != unsent && o.held != held {
		o.held = held
		o.moved++
	}
}

func (w *world) reading(step int32, f fate) *Target {
	if f != fine {
		return &Target{Read: Unknown}
	}
	o := w.objects[step]
	quarantine := Quarantine{Token: o.quarantine, Ended: o.ended, Why: "the assessor ended it", Held: o.held}
	if w.plan.Spec.Plan.Targets[step].Action == v1alpha1.ActionQuarantine {
		if !o.exists {
			return &Target{Read: No, ResourceVersion: strconv.Itoa(o.moved), Quarantine: quarantine}
		}
		return &Target{Read: Yes, UID: o.uid, ResourceVersion: strconv.Itoa(o.moved), Hash: o.hash, Ready: Yes, Quarantine: quarantine}
	}
	if !o.exists {
		return &Target{Read: No}
	}
	t := &Target{
		Read: Yes, UID: o.uid, ResourceVersion: strconv.Itoa(o.version), Generation: o.generation,
		Hash: o.hash, RestartedFor: o.token, Ending: o.ending, Ready: No,
	}
	if o.ready {
		t.Ready = Yes
	}
	return t
}

func (e *executor) dryRun(step int32, read *Target, f fate) *Write {
	o := e.w.objects[step]
	switch {
	case f != fine:
		return &Write{Result: Lost}
	case e.w.forbidden:
		return &Write{Result: Forbidden, Message: "no"}
	case e.plan.Spec.Plan.Targets[step].Action == v1alpha1.ActionQuarantine && strconv.Itoa(o.moved) != read.ResourceVersion:
		return &Write{Result: Conflicted}
	case e.plan.Spec.Plan.Targets[step].Action == v1alpha1.ActionQuarantine:
		return &Write{Result: Stored, Hash: driftedHash}
	case read.Read == No && o.exists:
		return &Write{Result: Conflicted}
	case read.Read == No:
		return &Write{Result: Stored, Hash: e.plan.Spec.Plan.Targets[step].DesiredHash}
	case !o.exists || o.uid != read.UID:
		return &Write{Result: Gone}
	case strconv.Itoa(o.version) != read.ResourceVersion:
		return &Write{Result: Conflicted}
	}
	return &Write{Result: Stored, Hash: e.plan.Spec.Plan.Targets[step].DesiredHash}
}
