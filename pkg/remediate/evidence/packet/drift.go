// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"cmp"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
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

func plannedDrift(step int32, of *evidence.Plan, target *v1alpha1.PlanTarget) Drift {
	subject := evidence.Subject{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name, UID: target.UID}
	if of != nil {
		subject.Namespace = of.Namespace
	}
	return Drift{
		Step: step, Object: subject.String(), DriftType: target.DriftType, Severity: severityOf(&target.Severity),
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
