// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Mutate stamps the spec hash on guarded root objects, and on all guarded objects where
// this webhook stamps the writer: an owner that a tenant adds or takes off must not decide
// whether a stamp is evidence. The same review always gets the same patch, dry run or not,
// and the patched object gets none. Mutate also judges and records updates, so that an
// update costs one call: see judgesUpdates.
func (v *Reviewer) Mutate(r *Review) Answer {
	snapshot := v.Snapshot()
	switch {
	case snapshot == nil:
		return Unassessed(ReasonNoSnapshot, nil)
	case r.SubResource != "":
		// The API server drops what a webhook changes in the metadata of a subresource.
		return Answer{Verdict: VerdictUnchanged}
	}
	switch r.Operation {
	case specguard.OperationCreate, specguard.OperationUpdate:
	case specguard.OperationDelete:
		// An answer with a patch would make the DELETE fail, failurePolicy Ignore or not.
		return Answer{Verdict: VerdictUnchanged}
	default:
		return Unassessed(ReasonUnknownOperation, nil)
	}
	now := v.Now()
	if snapshot.rulesUnseen(r.Namespace, r.Kind, now).Empty() {
		return v.leaveUnguarded(r)
	}
	object, old, err := pair(r)
	if err != nil {
		return Unassessed(reasonOf(err), err)
	}
	defer object.release()
	defer old.release()
	if !object.exists() {
		return Unassessed(ReasonMalformed, errMalformed)
	}
	rules := snapshot.rules(r.Namespace, r.Kind, now, object.labels(), old.labels())
	if rules.Empty() {
		return v.leaveUnguarded(r)
	}
	if !v.StampWriter && !specguard.IsRoot(r.Operation, r.Kind, old.owners(), object.owners()) {
		return Answer{Verdict: VerdictNotRoot}
	}
	hash := object.hash()
	patch, err := stampPatch(object, v.stamps(r, hash, old))
	switch {
	case err != nil:
		return Unassessed(ReasonMalformed, err)
	case v.judgesUpdates(r):
		answer := v.judgeObject(rules, r, object, old, stored{nextGeneration(old), hash})
		answer.Patch = patch
		return answer
	case patch == nil:
		return Answer{Verdict: VerdictUnchanged}
	default:
		return Answer{Verdict: VerdictStamped, Patch: patch}
	}
}

// leaveUnguarded answers about an object that no guard selects. Where this webhook stamps
// the writer, it takes the writer's stamp off such an object, because the writes of the
// object are neither stamped nor recorded. A stamp that stayed would name its writer for
// them, and a tenant can take off the label that a guard asks for.
func (v *Reviewer) leaveUnguarded(r *Review) Answer {
	answer := Answer{Verdict: VerdictUnguarded}
	// Nearly no such object has the annotations, so nearly none is parsed.
	if !v.StampWriter || !bytes.Contains(r.Object, []byte(v1alpha1.AnnotationWriter)) {
		return answer
	}
	object, err := parseObject(r.Object, r.Kind)
	if err != nil {
		return Unassessed(reasonOf(err), err)
	}
	defer object.release()
	answer.Patch, err = stampPatch(object, []stamp{{key: v1alpha1.AnnotationWriter}, {key: v1alpha1.AnnotationWriterGroups}})
	if err != nil {
		return Unassessed(ReasonMalformed, err)
	}
	return answer
}

// judgesUpdates tells whether Mutate judges and records a write, because the API
// server calls no other webhook of Plumbline for that write. A creation has no uid yet
// when Mutate sees it, so its record comes from Validate. So do all records where this
// webhook stamps the writer: there, the record has to show the stored object to prove
// the stamp, and the API server may allocate values (the node ports of a Service) after
// the mutating stage.
func (v *Reviewer) judgesUpdates(r *Review) bool {
	return r.Operation == specguard.OperationUpdate && !v.StampWriter
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
func (v *Reviewer) stamps(r *Review, hash canon.Hash, old object) []stamp {
	stamps := []stamp{{key: v1alpha1.AnnotationSpecHash, value: string(hash), wanted: true}}
	if !v.StampWriter {
		return stamps
	}
	if !old.exists() || hash != old.hash() {
		groups := v.stampedGroups(r.Identity.Groups)
		return append(stamps,
			stamp{key: v1alpha1.AnnotationWriter, value: r.Identity.User, wanted: true},
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
