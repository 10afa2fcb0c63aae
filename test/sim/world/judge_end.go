// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// second is the precision of stored times.
const second = time.Second

// ends: L1 to L4.
func (j *judge) ends(ended bool) {
	if len(j.w.forgotten) > 0 && slices.ContainsFunc(planNames(j.plans), func(name string) bool { return !j.deleted[name] && stopped(j.plans[name]) }) {
		j.seen[chainStops]++
		return // plans wait for its places and targets, too
	}
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if j.deleted[name] {
			continue
		}
		if !protocol.Final(p.Status.Phase) {
			j.breaks("L1", 0, "plan %s is %s and waits for %q", name, p.Status.Phase, p.Status.DeferralReason)
			continue
		}
		for i := range p.Status.Steps {
			j.resolved(p, &p.Status.Steps[i])
		}
		if told, _ := j.w.announced.Load(name); told != p.Status.Phase {
			j.breaks("L4", 0, "plan %s ended as %s, and people were told of %v", name, p.Status.Phase, told)
		}
	}
	j.placesAtTheEnd()
	if !ended && len(j.broken) == 0 {
		j.breaks("L2", 0, "it does not come to rest: %s", j.w.unrest())
	}
	written := map[string]int{}
	for _, e := range j.effects {
		written[e.Name]++
		if plans := len(j.phases); written[e.Name] > plans { // by their uids: one that was deleted may be made again
			j.breaks("L3", e.Revision, "%s was written %d times by %d plans", e.Name, written[e.Name], plans)
		}
	}
}

// placesAtTheEnd: L2 for the places of ledgers.
func (j *judge) placesAtTheEnd() {
	for _, name := range ledgerNames {
		if l := j.ledgers[name]; l != nil {
			for i := range l.Status.Entries {
				if entry := &l.Status.Entries[i]; entry.CompletionTime == nil {
					j.breaks("L2", 0, "ledger %s keeps a place for %s step %d", name, entry.PlanName, entry.Step)
				}
			}
		}
	}
}

// resolved: L2 for a step, L1 for what it says of its target.
func (j *judge) resolved(p *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) {
	switch step.State {
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
		j.breaks("L2", 0, "plan %s is %s, and its step %d %s", p.Name, p.Status.Phase, step.Index, step.State)
		return
	case v1alpha1.StepVerified, v1alpha1.StepFailed:
	case v1alpha1.StepSkipped, v1alpha1.StepFenced:
		for _, e := range j.effects {
			if e.plan.UID == p.UID && e.step == step.Index {
				j.breaks("I13", e.Revision, "step %d of %s wrote, and says that it is %s %s", step.Index, p.Name, step.State, step.Reason)
			}
		}
	}
	if step.Settled != v1alpha1.Enabled || step.Evidence == nil {
		j.breaks("L2", 0, "step %d of %s ended, and nobody told the ledgers or the records", step.Index, p.Name)
	}
	if step.State == v1alpha1.StepVerified {
		j.stays(p, step)
	}
}

// stays: L1. What was verified is as desired, unless somebody else wrote it since.
func (j *judge) stays(p *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) {
	planned := &p.Spec.Plan.Targets[step.Index]
	var last *apiserver.Commit
	for _, c := range j.history {
		if !ofTarget(c) || c.Name != planned.Name || c.Before != nil && c.After != nil && sameContent(c.Before, c.After) {
			continue
		}
		last = &c
	}
	if last == nil || last.User != Executor || last.After == nil {
		return
	}
	if another := func(e effect) bool { return e.Revision == last.Revision && e.plan.UID != p.UID }; slices.ContainsFunc(j.effects, another) {
		return // a later plan may lead to a state that was authorized since
	}
	if hash := j.w.hashOf(j.w.target(planned.Name), specOf(last.After)); hash != planned.DesiredHash {
		j.breaks("L1", last.Revision, "%s is verified, and %s is not as desired", p.Name, planned.Name)
	}
}

func specOf(o apiserver.Object) apiserver.Object {
	spec, _ := o["spec"].(map[string]any)
	return spec
}

// recorded: I13. The chain verifies against the heads and the plans, and has one
// record for each write, and none for a write that was not.
func (j *judge) recorded() {
	report, records := j.verified()
	if report == nil {
		return
	}
	told := j.told(records)
	j.endRecords(told)
	for _, p := range report.Problems {
		if len(j.w.forgotten) == 0 || !followsFromForgetting(p.Kind) {
			j.breaks("I13", 0, "%s", p)
		}
	}
	j.forgot(report)
	steps := map[string]evidence.Record{}
	var fences []evidence.Record
	for _, r := range told {
		switch r.Kind {
		case evidence.KindStep:
			steps[stepID(r.Plan.UID, r.Step.Index)] = r
		case evidence.KindFence:
			fences = append(fences, r)
		default:
		}
	}
	if j.seen[chainStops] == 0 {
		j.stepRecords(steps)
		j.decisionRecords(records, withdrawnBy(told))
	}
	for _, f := range j.fences {
		if !slices.ContainsFunc(fences, f.toldBy) && !j.erased[string(f.plan.UID)] {
			j.seen["fence without its record"]++
		}
	}
}

// decisionRecords: a record tells of a phase that the plan has had, or is withdrawn. The store may
// have lost the record that withdraws. A record in the place of a lost one is left alone: no head of
// it is kept, and no status names it.
func (j *judge) decisionRecords(records []evidence.Record, withdrawn map[int64]bool) {
	j.seen["decision that is withdrawn"] += len(withdrawn)
	for i := range records {
		r := &records[i]
		if !r.Decides() || withdrawn[r.Chain.Sequence] || j.replacesLost(r) || j.erased[r.Plan.UID] || j.phases[r.Plan.UID][r.Result.State] {
			continue
		}
		if j.overtaken(r) {
			j.seen["record of a decision that another executor overtook"]++
			continue
		}
		j.breaks("I13", 0, "record %d tells that plan %s was %s, and it never was", r.Chain.Sequence, r.Plan.Name, r.Result.State)
	}
}

// endRecords: I23. Each plan that has ended has a record that tells how, and that stands.
func (j *judge) endRecords(records []evidence.Record) {
	ends, withdrawn := map[string]bool{}, withdrawnBy(records)
	for i := range records {
		if r := &records[i]; r.Decides() && !withdrawn[r.Chain.Sequence] {
			ends[r.Plan.UID+" "+r.Result.State] = true
		}
	}
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if !protocol.Final(p.Status.Phase) || j.deleted[name] {
			continue
		}
		j.seen["end that is to have a record"]++
		if !ends[string(p.UID)+" "+string(p.Status.Phase)] {
			j.breaks("I23", j.finalAt[name], "plan %s ended as %s, and no record tells of that", name, p.Status.Phase)
		}
	}
}

// withdrawnBy gives the sequences of the records that others withdraw.
func withdrawnBy(records []evidence.Record) map[int64]bool {
	withdrawn := map[int64]bool{}
	for i := range records {
		if earlier := records[i].Withdraws; earlier != nil {
			withdrawn[earlier.Sequence] = true
		}
	}
	return withdrawn
}

// withdrawn says whether there is a record for each one that a plan withdraws.
func (w *World) withdrawn() bool {
	var wanted []int64
	for _, name := range w.plans.names() {
		if now := w.Server.Look(group, "remediationplans", namespace, name); now != nil {
			if d := typedOf[v1alpha1.RemediationPlan](w, now).Status.Decision; d != nil {
				for _, r := range d.Withdraws {
					wanted = append(wanted, r.Sequence)
				}
			}
		}
	}
	if len(wanted) == 0 {
		return true
	}
	found := 0
	_, err := evidence.Verify(context.Background(), w.evidence, w.keys.ring, evidence.Options{Each: func(s evidence.Sealed) {
		if earlier := s.Record.Withdraws; earlier != nil && slices.Contains(wanted, earlier.Sequence) {
			found++
		}
	}})
	return err == nil && found == len(wanted)
}

func stepID(planUID string, step int32) string { return fmt.Sprintf("%s.%d", planUID, step) }

// toldBy says whether a record tells of a fence: by the version that it left, or,
// when that was not known, by its step.
func (e effect) toldBy(r evidence.Record) bool {
	if r.Plan.UID != string(e.plan.UID) || r.Step.Index != e.step {
		return false
	}
	return r.Result.Origin == evidence.OriginRecovered || r.Result.ResourceVersion == strconv.FormatInt(e.Revision, 10)
}

func (j *judge) stepRecords(steps map[string]evidence.Record) {
	wrote := map[string]bool{}
	for _, e := range j.effects {
		id := stepID(string(e.plan.UID), e.step)
		wrote[id] = true
		r, told := steps[id]
		switch {
		case !told && !j.erased[string(e.plan.UID)]:
			j.breaks("I13", e.Revision, "no record tells of step %d of %s", e.step, e.plan.Name)
		case told && r.Result.Origin == evidence.OriginAPIResponse && r.Result.ResourceVersion != strconv.FormatInt(e.Revision, 10):
			j.breaks("I13", e.Revision, "the record of step %d of %s tells of version %s", e.step, e.plan.Name, r.Result.ResourceVersion)
		case told && (r.Result.State == string(v1alpha1.StepSkipped) || r.Result.State == string(v1alpha1.StepFenced)):
			j.breaks("I13", e.Revision, "the record of step %d of %s says %s", e.step, e.plan.Name, r.Result.State)
		}
	}
	for id, r := range steps {
		if !wrote[id] && r.Result.Origin == evidence.OriginAPIResponse {
			j.breaks("I13", 0, "a record tells of an answer to a write that was never stored: step %s", id)
		}
	}
}

// verified gives what is wrong with the chains, and all good records; nil when they cannot be read.
func (j *judge) verified() (*evidence.Report, []evidence.Record) {
	o := evidence.Options{Heads: map[string]evidence.Head{}}
	var records []evidence.Record
	o.Each = func(s evidence.Sealed) { records = append(records, s.Record) }
	if l := j.ledgers[environment]; l != nil && !j.deleted["ledger "+environment] {
		for _, c := range l.Status.Chains {
			o.Heads[c.PolicyUID] = evidence.Head{Sequence: c.Sequence, Digest: c.Digest}
		}
	}
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if !protocol.Final(p.Status.Phase) {
			continue
		}
		o.Plans = append(o.Plans, packet.StatusOf(p))
	}
	report, err := evidence.Verify(context.Background(), j.w.evidence, j.w.keys.ring, o)
	if err != nil {
		j.breaks("I13", 0, "the records cannot be read: %v", err)
		return nil, nil
	}
	return report, records
}
