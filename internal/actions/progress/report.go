// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Report is what is kept of a run.
type Report struct {
	Screen
	// Time of the report.
	Time time.Time `json:"time"`
	// End is why the run has ended; nil while the run is under way.
	End *End `json:"end,omitempty"`
	// Health of both variations in the stage that was measured last; empty without a measurement.
	Health []v1alpha1.VariationHealth `json:"health,omitempty"`
	// LastVerdict is about that stage; nil without a verdict.
	LastVerdict *Judge `json:"lastVerdict,omitempty"`
	// Before are the stages that were measured before that one, as the judge has found them last.
	Before []v1alpha1.StageHealth `json:"before,omitempty"`
	// History has the lines that the status still has, the newest last.
	History []v1alpha1.RolloutEvent `json:"history,omitempty"`
}

// ReportOf returns the report of the run that began last. now is the time of the API server.
func ReportOf(r *v1alpha1.ABRelease, now time.Time) Report {
	report := Report{Screen: ScreenOf(r, now), Time: now}
	in := r.Status.Rollout
	if in == nil || in.Run == nil || !report.HasRollout {
		return report
	}
	report.History = in.History
	last := endOf(in)
	report.Health, report.LastVerdict = last.Health, last.Judge
	if a := in.Analysis; a != nil && a.Run == in.Run.Number {
		report.Before = a.Stages
	}
	if hasEnded(in.Run.State) {
		report.End = last
	}
	return report
}
