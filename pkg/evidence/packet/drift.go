// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"cmp"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// driftOf returns the drift of each target: as the plan says it, else as the records of the
// steps do.
func driftOf(plan *v1alpha1.PlannedRemediation, of *evidence.Plan, records []evidence.Sealed) []Drift {
	items := []Drift{}
	if plan != nil {
		for i := range plan.Targets {
			items = append(items, plannedDrift(int32(i), of, &plan.Targets[i])) //nolint:gosec // at most ten
		}
		return items
	}
	for i := range records {
		if r := &records[i].Record; r.Kind == evidence.KindStep {
			items = append(items, recordedDrift(r))
		}
	}
	slices.SortStableFunc(items, func(a, b Drift) int { return cmp.Compare(a.Step, b.Step) })
	return items
}

// DesignDriftType is a type of drift in the words of the Drift Remediation Automation of
// Stella Ops, which evidence keeps: docs/reference/differences.md maps them.
type DesignDriftType string

// designDriftType converts a type of drift to the words of the design.
func designDriftType(t v1alpha1.DriftType) DesignDriftType {
	switch t {
	case v1alpha1.DriftImage:
		return "DigestMismatch"
	case v1alpha1.DriftScale:
		return "StatusMismatch"
	case v1alpha1.DriftMissing, v1alpha1.DriftUnexpected, v1alpha1.DriftOther:
		return DesignDriftType(t)
	}
	return DesignDriftType(t) // of a later version
}

func plannedDrift(step int32, of *evidence.Plan, target *v1alpha1.PlanTarget) Drift {
	subject := evidence.Subject{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name, UID: target.UID}
	if of != nil {
		subject.Namespace = of.Namespace
	}
	return Drift{
		Step: step, Object: subject.String(), DriftType: designDriftType(target.DriftType), Severity: severityOf(&target.Severity),
		Paths: append([]string{}, target.Paths...), FirstSeen: target.FirstSeenTime.UTC(), Actors: target.Actors,
		Action: string(target.Action), DriftedHash: target.DriftedHash, DesiredHash: target.DesiredHash,
	}
}

func severityOf(s *v1alpha1.Severity) *evidence.Severity {
	out := &evidence.Severity{Level: string(s.Level), Score: s.Score}
	for _, f := range s.Factors {
		out.Factors = append(out.Factors, evidence.Factor{Name: f.Name, Score: f.Score, Weight: f.Weight})
	}
	return out
}

func recordedDrift(r *evidence.Record) Drift {
	d := Drift{Step: r.Step.Index, Object: r.Subject.String(), Severity: r.Severity, Paths: []string{}, Action: r.Step.Action}
	if r.Drift != nil {
		d.Paths = append(d.Paths, r.Drift.Paths...)
	}
	if i := r.Intent; i != nil {
		d.DriftedHash, d.DesiredHash = i.PreHash, i.DesiredHash
	}
	return d
}
