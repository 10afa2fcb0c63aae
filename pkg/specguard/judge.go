// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Outcome is what admission does about a write. Nothing is refused.
type Outcome string

// The outcomes.
const (
	// OutcomeAllow: nothing of the write becomes drift.
	OutcomeAllow Outcome = "Allow"
	// OutcomeAudit: some of it is drift unless it restores the Baseline; the writer is
	// not told.
	OutcomeAudit Outcome = "Audit"
	// OutcomeWarn: the same, and the writer is told.
	OutcomeWarn Outcome = "Warn"
)

// maxFields bounds the paths that a Verdict or a WriteRecord names.
const maxFields = 64

// Review is one write as admission sees it.
type Review struct {
	Operation             Operation
	Subresource           string
	Namespace, Kind, Name string
	Identity              Identity
	// OfWorkload says that the object is a pod that a workload made: the guards are the
	// workload's, and the pod has no Baseline.
	OfWorkload bool
	// Changes from the old to the new object, unfiltered; none for CREATE and
	// DELETE, which are about the object as a whole.
	Changes []diff.Change
}

// Verdict is the judgment on one write.
type Verdict struct {
	Outcome Outcome
	// Class of the writer, the least trusted over the fields.
	Class v1alpha1.ActorClass
	Mode  v1alpha1.GuardMode
	// Fields are the changed guarded paths, sorted, at most 64 of FieldsTotal.
	Fields      []string
	FieldsTotal int
	// Drift is how many of them are drift unless they restore the Baseline; 1 for a
	// whole object.
	Drift int
	// Benign says that only benign or ignored fields changed.
	Benign bool
	// Warnings for the writer, each of at most 256 bytes.
	Warnings []string
}

// Judge classifies a write under the rules. It never refuses: the modes that
// exist here observe. A write that no guard selects is allowed.
func Judge(rules Rules, r Review) Verdict {
	v := Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorTrusted, Mode: rules.Mode()}
	if rules.Empty() {
		v.Class = v1alpha1.ActorUnknown
		return v
	}
	var drifting []canon.Path
	switch r.Operation {
	case OperationUpdate:
		drifting = v.judgeChanges(rules, r)
	case OperationCreate, OperationDelete:
		v.judgeObject(rules, r)
	default: // an operation that is not registered: counted as drift, not let off
		v.judgeObject(rules, r)
	}
	if v.Drift == 0 {
		return v
	}
	v.Outcome = OutcomeAudit
	if v.Mode == v1alpha1.GuardModeWarn {
		v.Outcome = OutcomeWarn
		v.Warnings = warnings(rules, r, drifting)
	}
	return v
}

func (v *Verdict) judgeObject(rules Rules, r Review) {
	v.Class, _ = rules.ClassifyAt(r.Identity, canon.Path{})
	if v.Class != v1alpha1.ActorTrusted && v.Class != v1alpha1.ActorSystem {
		v.Drift = 1
	}
}

func (v *Verdict) judgeChanges(rules Rules, r Review) (drifting []canon.Path) {
	v.Benign = len(r.Changes) > 0
	for _, whole := range r.Changes {
		for _, c := range judgedParts(rules, r.Identity, whole) {
			v.Benign = false
			class, _ := rules.ClassifyAt(r.Identity, c.Path)
			v.Class = LeastTrusted(v.Class, class)
			v.FieldsTotal++
			if len(v.Fields) < maxFields {
				v.Fields = append(v.Fields, c.Path.String())
			}
			if class == v1alpha1.ActorUntrusted || class == v1alpha1.ActorUnknown {
				v.Drift++
				drifting = append(drifting, c.Path)
			}
		}
	}
	if v.Benign || v.FieldsTotal == 0 {
		v.Class, _ = rules.ClassifyAt(r.Identity, canon.Path{})
	}
	slices.Sort(v.Fields)
	return drifting
}

// judgedParts are the parts of a change that are compared, taken apart as far as
// an exclusion or, for writers who are not trusted, an expectation demands.
func judgedParts(rules Rules, id Identity, c diff.Change) []diff.Change {
	class, _ := rules.ClassifyAt(id, c.Path)
	// A verdict shows paths and no values, so the kind does not matter.
	parts := splitWhere(canon.GVK{}, func(p canon.Path) bool {
		return rules.excludedBelow(p) || class != v1alpha1.ActorTrusted && rules.expectedBelow(p)
	}, c)
	return slices.DeleteFunc(parts, func(part diff.Change) bool { return rules.excludes(part.Path) })
}
