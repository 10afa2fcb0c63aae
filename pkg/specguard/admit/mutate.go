// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Mutate stamps the spec hash on guarded root objects, and on all guarded objects where
// this webhook stamps the writer: an owner that a tenant adds or takes off must not decide
// whether a stamp is evidence. The same review always gets the same patch, dry run or not,
// and the patched object gets none. Mutate also judges and records updates, so that an
// update costs one call: see judgesUpdates.
func (v *Reviewer) Mutate(r *admission.Review) admission.Answer {
	snapshot := v.Snapshot()
	switch {
	case snapshot == nil:
		return admission.Unassessed(admission.ReasonNoSnapshot, nil)
	case r.SubResource != "":
		// The API server drops what a webhook changes in the metadata of a subresource.
		return admission.Answer{Verdict: VerdictUnchanged}
	}
	switch operationOf(r) {
	case specguard.OperationCreate, specguard.OperationUpdate:
	case specguard.OperationDelete:
		// An answer with a patch would make the DELETE fail, failurePolicy Ignore or not.
		return admission.Answer{Verdict: VerdictUnchanged}
	default:
		return admission.Unassessed(admission.ReasonUnknownOperation, nil)
	}
	now := v.Now()
	if snapshot.rulesUnseen(r.Namespace, r.Name, kindOf(r), now).Empty() {
		return v.leaveUnguarded(r)
	}
	object, old, err := pair(r)
	if err != nil {
		return admission.Unassessed(reasonOf(err), err)
	}
	defer object.release()
	defer old.release()
	if !object.exists() {
		return admission.Unassessed(admission.ReasonMalformed, admission.ErrMalformed)
	}
	rules := snapshot.rules(r.Namespace, r.Name, kindOf(r), now, object.labels(), old.labels())
	if rules.Empty() {
		return v.leaveUnguarded(r)
	}
	if !v.StampWriter && !specguard.IsRoot(operationOf(r), kindOf(r), old.owners(), object.owners()) {
		return admission.Answer{Verdict: VerdictNotRoot}
	}
	hash := object.hash()
	patch, err := stampPatch(object, v.stamps(r, hash, old))
	switch {
	case err != nil:
		return admission.Unassessed(admission.ReasonMalformed, err)
	case v.judgesUpdates(r):
		answer := v.judgeObject(rules, r, object, old, stored{nextGeneration(old), hash})
		answer.Patch = patch
		return answer
	case patch == nil:
		return admission.Answer{Verdict: VerdictUnchanged}
	default:
		return admission.Answer{Verdict: VerdictStamped, Patch: patch}
	}
}

// leaveUnguarded answers about an object that no guard selects. Where this webhook stamps
// the writer, it takes the writer's stamp off such an object, because the writes of the
// object are neither stamped nor recorded. A stamp that stayed would name its writer for
// them, and a tenant can take off the label that a guard asks for.
func (v *Reviewer) leaveUnguarded(r *admission.Review) admission.Answer {
	answer := admission.Answer{Verdict: VerdictUnguarded}
	// Nearly no such object has the annotations, so nearly none is parsed.
	if !v.StampWriter || !bytes.Contains(r.Object, []byte(v1alpha1.AnnotationWriter)) {
		return answer
	}
	object, err := parseObject(r.Object, kindOf(r))
	if err != nil {
		return admission.Unassessed(reasonOf(err), err)
	}
	defer object.release()
	answer.Patch, err = stampPatch(object, []stamp{{key: v1alpha1.AnnotationWriter}, {key: v1alpha1.AnnotationWriterGroups}})
	if err != nil {
		return admission.Unassessed(admission.ReasonMalformed, err)
	}
	return answer
}

// judgesUpdates tells whether Mutate judges and records a write, because the API
// server calls no other webhook of Plumbline for that write. A creation has no uid yet
// when Mutate sees it, so its record comes from Validate. So do all records where this
// webhook stamps the writer: there, the record has to show the stored object to prove
// the stamp, and the API server may allocate values (the node ports of a Service) after
// the mutating stage.
func (v *Reviewer) judgesUpdates(r *admission.Review) bool {
	return operationOf(r) == specguard.OperationUpdate && !v.StampWriter
}

// nextGeneration returns the generation of an object after an update that changes its
// content: the API server counts such updates after the mutating stage.
func nextGeneration(old object) int64 {
	if generation := old.generation(); generation > 0 {
		return generation + 1
	}
	return 0
}

// stamps are the annotations as they have to be.
func (v *Reviewer) stamps(r *admission.Review, hash canon.Hash, old object) []stamp {
	stamps := []stamp{{key: v1alpha1.AnnotationSpecHash, value: string(hash), wanted: true}}
	if !v.StampWriter {
		return stamps
	}
	if !old.exists() || hash != old.hash() {
		groups := v.stampedGroups(r.Groups)
		return append(stamps,
			stamp{key: v1alpha1.AnnotationWriter, value: r.User, wanted: true},
			stamp{key: v1alpha1.AnnotationWriterGroups, value: groups, wanted: groups != ""})
	}
	for _, key := range []string{v1alpha1.AnnotationWriter, v1alpha1.AnnotationWriterGroups} {
		value, ok := old.annotation(key)
		stamps = append(stamps, stamp{key: key, value: value, wanted: ok})
	}
	return stamps
}

// stampedGroups are those of the writer's groups that the installation keeps.
func (v *Reviewer) stampedGroups(groups []string) string {
	var kept []string
	for _, g := range groups {
		if slices.Contains(v.StampedGroups, g) {
			kept = append(kept, g)
		}
	}
	slices.Sort(kept)
	return strings.Join(slices.Compact(kept), ",")
}
