// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Bounds of what is recorded and answered.
const (
	maxFields   = 64
	maxGroups   = 128
	maxWarnings = 8
)

// Validate says who changed what and what the guards think of it, and queues
// the record of the write unless it is a dry run. It judges creations, deletions and
// subresources; updates of objects, too, where Mutate does not.
func (v *Reviewer) Validate(r *admission.Review) admission.Answer {
	snapshot := v.Snapshot()
	if snapshot == nil {
		return admission.Unassessed(admission.ReasonNoSnapshot, nil)
	}
	switch operationOf(r) {
	case specguard.OperationCreate, specguard.OperationUpdate, specguard.OperationDelete:
	default:
		return admission.Unassessed(admission.ReasonUnknownOperation, nil)
	}
	switch r.SubResource {
	case "":
		return v.validateObject(snapshot, r)
	case "scale":
		return v.validateScale(snapshot, r)
	case "ephemeralcontainers", "resize":
		return v.validatePod(snapshot, r)
	default:
		return admission.Unassessed(admission.ReasonUnknownSubresource, nil)
	}
}

// validateObject judges a write of the whole object.
func (v *Reviewer) validateObject(snapshot *Snapshot, r *admission.Review) admission.Answer {
	now := v.Now()
	if snapshot.rulesUnseen(r.Namespace, r.Name, kindOf(r), now).Empty() {
		return admission.Answer{Verdict: VerdictUnguarded}
	}
	object, old, err := pair(r)
	if err != nil {
		return admission.Unassessed(reasonOf(err), err)
	}
	defer object.release()
	defer old.release()
	if !object.exists() && !old.exists() {
		return admission.Unassessed(admission.ReasonMalformed, admission.ErrMalformed)
	}
	rules := snapshot.rules(r.Namespace, r.Name, kindOf(r), now, object.labels(), old.labels())
	if rules.Empty() {
		return admission.Answer{Verdict: VerdictUnguarded}
	}
	if !specguard.IsRoot(operationOf(r), kindOf(r), old.owners(), object.owners()) {
		v.recordProduct(r, object, old)
		return admission.Answer{Verdict: VerdictNotRoot}
	}
	return v.judgeObject(rules, r, object, old, storedAs(object))
}

// recordProduct queues the record of a write of what a built-in controller made, where
// this webhook stamps the writer: such a stamp proves nothing without the record. A
// deletion leaves no stamp behind.
func (v *Reviewer) recordProduct(r *admission.Review, object, old object) {
	if v.StampWriter && object.exists() {
		v.recordObject(r, object, old, storedAs(object), changesOf(object, old))
	}
}

// stored identifies the object that the API server stores if it accepts the write.
type stored struct {
	generation int64 // 0 for a kind without generations
	hash       canon.Hash
}

// storedAs identifies an object that is reviewed as it will be stored.
func storedAs(object object) stored { return stored{object.generation(), object.hash()} }

// judgeObject judges a write of the whole object by the rules that select it, and
// queues the record.
func (v *Reviewer) judgeObject(rules specguard.Rules, r *admission.Review, object, old object, after stored) admission.Answer {
	changes := changesOf(object, old)
	v.recordObject(r, object, old, after, changes)
	return judge(rules, r, kindOf(r), changes)
}

// recordObject queues the record of a write of the whole object.
func (v *Reviewer) recordObject(r *admission.Review, object, old object, after stored, changes []diff.Change) {
	if operationOf(r) == specguard.OperationUpdate && len(changes) == 0 {
		return // Labels, owners or our annotations: nothing that a record explains.
	}
	rec := v.record(r, kindOf(r), object, old)
	rec.Generation, rec.HashAfter = after.generation, string(after.hash)
	rec.Fields = fieldsOf(changes)
	v.enqueue(r, rec)
}

// changesOf is the field diff of an update. What is created or deleted has
// changed as a whole, which the operation says.
func changesOf(object, old object) []diff.Change {
	if !object.exists() || !old.exists() {
		return nil
	}
	return diff.Compare(old.doc, object.doc)
}

// judge asks the rules and turns the verdict into an answer.
func judge(rules specguard.Rules, r *admission.Review, guarded canon.GVK, changes []diff.Change) admission.Answer {
	return answerTo(rules, reviewOf(r, guarded, changes))
}

// reviewOf is a review as the rules see it.
func reviewOf(r *admission.Review, guarded canon.GVK, changes []diff.Change) specguard.Review {
	return specguard.Review{
		Operation:   operationOf(r),
		Subresource: r.SubResource,
		Namespace:   r.Namespace,
		Kind:        guarded.Kind,
		Name:        r.Name,
		Identity:    identityOf(r),
		Changes:     changes,
	}
}

func answerTo(rules specguard.Rules, review specguard.Review) admission.Answer {
	verdict := specguard.Judge(rules, review)
	answer := admission.Answer{Verdict: verdictOf(verdict.Outcome), Class: verdict.Class}
	if answer.Verdict == VerdictWarn {
		answer.Warnings = verdict.Warnings[:min(len(verdict.Warnings), maxWarnings)]
	}
	answer.Audit = map[string]string{
		"verdict": string(answer.Verdict),
		"class":   string(answer.Class),
		"fields":  strconv.Itoa(verdict.FieldsTotal),
	}
	return answer
}

// verdictOf names an outcome. One that is not known is the careful one: it is
// recorded like a foreign change.
func verdictOf(outcome specguard.Outcome) admission.Verdict {
	switch outcome {
	case specguard.OutcomeAllow:
		return VerdictAllow
	case specguard.OutcomeWarn:
		return VerdictWarn
	case specguard.OutcomeAudit:
		return VerdictAudit
	default:
		return VerdictAudit
	}
}

// record is what all records share. On CREATE the uid is that of the new
// object, otherwise that of the old one: a body may claim any.
func (v *Reviewer) record(r *admission.Review, guarded canon.GVK, object, old object) specguard.WriteRecord {
	uid := old.uid()
	if !old.exists() {
		uid = object.uid()
	}
	return specguard.WriteRecord{
		UID:                   uid,
		APIVersion:            apiVersion(guarded),
		Kind:                  guarded.Kind,
		Namespace:             r.Namespace,
		Name:                  r.Name,
		Operation:             operationOf(r),
		Subresource:           r.SubResource,
		ResourceVersionBefore: old.resourceVersion(),
		Identity: specguard.Identity{
			User:   r.User,
			Groups: slices.Clone(r.Groups[:min(len(r.Groups), maxGroups)]),
		},
		FieldManager:  r.FieldManager,
		Time:          v.Now().UTC(),
		Authenticated: r.Authenticated,
	}
}

// enqueue hands a record over; a dry run leaves none.
func (v *Reviewer) enqueue(r *admission.Review, rec specguard.WriteRecord) {
	if !r.DryRun {
		v.Recorder.Enqueue(rec)
	}
}

func apiVersion(gvk canon.GVK) string {
	if gvk.Group == "" {
		return gvk.Version
	}
	return gvk.Group + "/" + gvk.Version
}

func fieldsOf(changes []diff.Change) []string {
	var out []string
	for i := range changes[:min(len(changes), maxFields)] {
		out = append(out, changes[i].Path.String())
	}
	return out
}
