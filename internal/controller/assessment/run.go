// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// runEnd is the end of a run, as the history of its release tells it.
type runEnd struct {
	number   int64
	promoted bool
	// began is when the run began, or the time of the first of its lines that the history has.
	began, ended time.Time
	// moved says that the canary got requests, or replicas. A run whose beginning the history has no more counts
	// as one that moved some.
	moved bool
}

// runEnds returns the ends of runs that a history tells, in their order.
func runEnds(history []rollout.Entry) []runEnd {
	var ends []runEnd
	runs := map[int64]*runEnd{}
	for i := range history {
		line := &history[i]
		if line.Run == 0 {
			continue
		}
		run := runs[line.Run]
		if run == nil {
			run = &runEnd{number: line.Run, began: line.Time, moved: line.Event != rollout.RunCreated}
			runs[line.Run] = run
		}
		run.moved = run.moved || line.Weight > 0
		if promoted := line.Event == rollout.RunPromoted; promoted || line.Event == rollout.RunRolledBack {
			run.promoted, run.ended = promoted, line.Time
			ends = append(ends, *run)
		}
	}
	return ends
}

// specOfRun returns what is assessed of a run that has ended; false if the release does not say which workload
// serves. The revisions of a run are known until the next run begins.
func specOfRun(release *v1alpha1.ABRelease, end *runEnd) (v1alpha1.EffectivenessAssessmentSpec, bool) {
	written := metav1.NewTime(end.ended)
	spec := v1alpha1.EffectivenessAssessmentSpec{
		Subject:       v1alpha1.AssessmentSubject{Release: &v1alpha1.AssessedRun{Name: release.Name, UID: string(release.UID), Run: end.number}},
		CorrelationID: string(release.UID), RequestedBy: planner.InitiatedByItself, Action: v1alpha1.AssessedRollback,
		DriftTime: metav1.NewTime(end.began), Execution: v1alpha1.ExecutionNone, Windows: windowsOf(nil),
	}
	if end.promoted {
		spec.Action = v1alpha1.AssessedPromote
	}
	if end.moved || end.promoted {
		spec.Execution, spec.WrittenTime = v1alpha1.ExecutionDone, &written
	}
	if of := release.Spec.Rollout; of != nil {
		spec.RequestedBy = cmp.Or(of.RequestedBy, spec.RequestedBy)
	}
	serving := activeVariation(release)
	if in := release.Status.Rollout; in != nil && in.Run != nil && in.Run.Number == end.number {
		serving, spec.PreHash, spec.PostHash = revisionsOf(in.Run, end.promoted)
		spec.RequestedBy = cmp.Or(in.Run.Author, spec.RequestedBy)
	}
	workload := clone.WorkloadOf(release, serving)
	if workload == nil {
		return spec, false
	}
	spec.Target = targetOf(workload)
	spec.Signal = v1alpha1.AssessedSignal{APIVersion: "v1", Kind: "Service", Name: release.Spec.ServiceName}
	if release.Spec.ServiceName == "" { // the replicas of groups are divided, and no requests
		spec.Signal = v1alpha1.AssessedSignal{APIVersion: spec.Target.APIVersion, Kind: spec.Target.Kind, Name: spec.Target.Name}
	}
	return spec, true
}

// activeVariation is the variation that serves while no run is on.
func activeVariation(release *v1alpha1.ABRelease) v1alpha1.VariationName {
	return cmp.Or(release.Status.ActiveVariation, release.Spec.Stable)
}

// revisionsOf returns the variation that serves after a run, the revision that the run led away from, and the one
// that serves. After the promotion of a clone the active variation serves, with the change of the clone.
func revisionsOf(run *v1alpha1.RolloutRun, promoted bool) (serving v1alpha1.VariationName, before, after string) {
	switch {
	case !promoted:
		return run.From.Variation, run.To.Hash, run.From.Hash
	case run.Clone == nil:
		return run.To.Variation, run.From.Hash, run.To.Hash
	case run.Clone.Changed == nil:
		return run.From.Variation, run.From.Hash, ""
	}
	return run.From.Variation, run.From.Hash, run.Clone.Changed.Hash
}

// targetOf returns a workload as a target. It need not be guarded; if it is, its Baseline has this name.
func targetOf(w *v1alpha1.VariationWorkload) v1alpha1.AssessedTarget {
	kind := string(w.Kind)
	group, version := "apps", "apps/v1"
	if w.Kind == v1alpha1.VariationJob {
		group, version = "batch", "batch/v1"
	}
	return v1alpha1.AssessedTarget{
		BaselineTarget: v1alpha1.BaselineTarget{APIVersion: version, Kind: kind, Name: w.Name},
		BaselineName:   specguard.BaselineName(strings.ToLower(kind)+"s", group, w.Name),
	}
}
