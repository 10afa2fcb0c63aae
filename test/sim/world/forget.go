// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// lastRecords are the records of which a store forgets one.
const lastRecords = 3

// forgets has the store lose one of the last records that it has taken, as a store does that is
// restored from a backup, or whose writes were acknowledged before they were safe.
func (p *person) forgets() {
	_, _ = schedule.Call(p.Context(), p.Life, schedule.Message{What: "evidence forget", Writes: true}, func() (any, error) {
		var names []string
		for _, name := range p.w.evidence.Names() {
			if _, _, isRecord := evidence.ParseName(name); isRecord {
				names = append(names, name)
			}
		}
		if names = names[max(0, len(names)-lastRecords):]; len(names) > 0 {
			p.w.forget(names[p.w.s.Rand().IntN(len(names))])
		}
		return nil, nil
	})
}

// forget loses a record, and remembers which one.
func (w *World) forget(name string) {
	data, err := w.evidence.Read(context.Background(), name)
	if err != nil {
		return
	}
	sealed, err := evidence.Open(w.keys.ring, data)
	if err != nil {
		return
	}
	w.evidence.Remove(name)
	w.forgotten = append(w.forgotten, sealed)
	w.count("record that the store forgot")
}

// followsFromForgetting says that a problem of a chain may follow from a record that its store
// forgot: the executor neither writes the record again nor stops because of it.
func followsFromForgetting(kind evidence.ProblemKind) bool {
	switch kind {
	case evidence.ProblemGap, evidence.ProblemCutOff, evidence.ProblemNotStored, evidence.ProblemOtherHead, evidence.ProblemBrokenLink, evidence.ProblemRepeated, evidence.ProblemNotInStatus,
		evidence.ProblemUnfounded: // the decision that was withdrawn is lost
		return true
	default:
		return false
	}
}

// forgot: I26. Each record that the store forgot is missed when the chain is verified, if its
// head or a later one was kept. Where another record has its place, its own head counts alone.
func (j *judge) forgot(report *evidence.Report) {
	for _, lost := range j.w.forgotten {
		stored, err := j.w.evidence.Read(context.Background(), lost.Name)
		switch {
		case err == nil && string(stored) == string(lost.Envelope):
			j.seen["forgotten record that was written again"]++
		case lost.Record.Chain.Sequence > j.kept, err == nil && !j.keptHeads[lost.Digest], j.deleted["ledger "+environment]:
			j.seen["forgotten record whose head was not kept"]++
		case missed(report, lost):
			j.seen["forgotten record that is missed"]++
		default:
			j.breaks("I26", 0, "the store forgot record %d, a head of %d was kept, and verifying tells of %v", lost.Record.Chain.Sequence, j.kept, report.Problems)
		}
	}
}

// keeps notes how far the chain goes by its ledger.
func (j *judge) keeps(l *v1alpha1.RemediationLedger) {
	for _, c := range l.Status.Chains {
		if l.Name == environment && c.PolicyUID == string(j.w.policyUID) {
			j.kept = max(j.kept, c.Sequence)
			j.keptHeads[c.Digest] = true
		}
	}
}

// missed says that a report tells that a record is gone, or is another one.
func missed(report *evidence.Report, lost evidence.Sealed) bool {
	sequence := lost.Record.Chain.Sequence
	return slices.ContainsFunc(report.Problems, func(p evidence.Problem) bool {
		switch p.Kind {
		case evidence.ProblemGap:
			return p.Sequence <= sequence
		case evidence.ProblemCutOff, evidence.ProblemOtherHead: // a digest is one of all records before
			return p.Sequence >= sequence
		case evidence.ProblemBrokenLink:
			return p.Sequence > sequence
		case evidence.ProblemNotStored:
			return strings.Contains(p.Text, lost.Digest)
		default:
			return false
		}
	})
}

// told are the records of a chain with those that its store forgot.
func (j *judge) told(records []evidence.Record) []evidence.Record {
	told := slices.Clone(records)
	for _, lost := range j.w.forgotten {
		told = append(told, lost.Record)
	}
	return told
}

// replacesLost says that a record has the place of one that the store forgot.
func (j *judge) replacesLost(r *evidence.Record) bool {
	return slices.ContainsFunc(j.w.forgotten, func(lost evidence.Sealed) bool { return lost.Record.Chain.Sequence == r.Chain.Sequence })
}

// stopped says that a plan cannot go on before a person has looked at its records, and says so:
// what stands in the store is not what the executors wrote.
func stopped(p *v1alpha1.RemediationPlan) bool {
	why := p.Status.DeferralReason
	return !protocol.Final(p.Status.Phase) && (strings.Contains(why, "cannot be recorded") || strings.Contains(why, "record could not be written"))
}

// chainStops is what is counted when the plans of a policy wait for a person to look at its records.
const chainStops = "chain that stops until a person has looked"

// longStop is for how long a plan stands still at least that nothing disturbs, and that a person
// has to look at.
const longStop = 3 * time.Minute

// stands says that a plan has stood still for long because of its records.
func (w *World) stands() bool {
	if len(w.forgotten) == 0 || w.calmSince.IsZero() || time.Since(w.calmSince) < longStop {
		return false
	}
	return slices.ContainsFunc(w.plans.names(), func(name string) bool {
		now := w.Server.Look(group, "remediationplans", namespace, name)
		return now != nil && stopped(typedOf[v1alpha1.RemediationPlan](w, now))
	})
}

// adopts has a chain go as far as its store has it, whatever its ledger says.
func adopts(p *process, own clock.PassiveClock) {
	p.executor.Evidence.Heads = adoptedHeads{p.executor.Evidence.Heads, p.w}
	storesLedgers(func(l, _ *v1alpha1.RemediationLedger) bool {
		for i := range l.Status.Chains {
			c := &l.Status.Chains[i]
			head := p.w.adopted(c.PolicyUID, evidence.Head{Sequence: c.Sequence, Digest: c.Digest})
			c.Sequence, c.Digest = head.Sequence, head.Digest
		}
		return true
	})(p, own)
}

// adoptedHeads are those of the store.
type adoptedHeads struct {
	exec.Heads
	w *World
}

// Head implements exec.Heads.
func (h adoptedHeads) Head(ctx context.Context, environment, chain string) (evidence.Head, error) {
	head, err := h.Heads.Head(ctx, environment, chain)
	return h.w.adopted(chain, head), err //nolint:wrapcheck,contextcheck // it stands for them, and looks beside all disturbances
}

// adopted is the last record that the store has up to a head.
func (w *World) adopted(chain string, head evidence.Head) evidence.Head {
	for sequence := head.Sequence; sequence > 0; sequence-- {
		data, err := w.evidence.Read(context.Background(), evidence.Name(chain, sequence))
		if err != nil {
			continue
		}
		if sealed, err := evidence.Open(w.keys.ring, data); err == nil {
			return sealed.Head()
		}
	}
	return head
}

// withForgetting has stores that often fail, and forget.
func withForgetting(c *scenario) {
	beside(disturber("forgetter", "root", (*person).forgets))(c)
	c.chances = schedule.Chances{Busy: 60, Crash: 5}
	c.messages = 400
}
