// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// line is one of a history, some minutes after noon.
func line(number, run int64, minute int, event rollout.EventName, weight traffic.Weight) rollout.Entry {
	return rollout.Entry{Number: number, Run: run, Time: noon.Add(time.Duration(minute) * time.Minute), Event: event, Weight: weight}
}

func TestWhichRunsAHistoryTellsTheEndOf(t *testing.T) {
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	tests := map[string]struct {
		history []rollout.Entry
		want    []runEnd
	}{
		"no history":         {nil, nil},
		"a run that goes on": {[]rollout.Entry{line(1, 1, 0, rollout.RunCreated, 0), line(2, 1, 1, rollout.StageStarted, 1_000)}, nil},
		"a run that was promoted": {
			[]rollout.Entry{line(1, 1, 0, rollout.RunCreated, 0), line(2, 1, 1, rollout.StageStarted, 1_000), line(3, 1, 9, rollout.RunPromoted, 10_000)},
			[]runEnd{{1, true, minute(0), minute(9), true}},
		},
		"a run that was rolled back": {
			[]rollout.Entry{line(1, 1, 0, rollout.RunCreated, 0), line(2, 1, 1, rollout.StageStarted, 1_000), line(3, 1, 2, rollout.RunRolledBack, 0)},
			[]runEnd{{1, false, minute(0), minute(2), true}},
		},
		"a run that gave the canary no request": {
			[]rollout.Entry{line(1, 1, 0, rollout.RunCreated, 0), line(2, 1, 5, rollout.WaitOverdue, 0), line(3, 1, 9, rollout.RunRolledBack, 0)},
			[]runEnd{{1, false, minute(0), minute(9), false}},
		},
		"a run whose beginning is gone": {
			[]rollout.Entry{line(70, 4, 3, rollout.StagePassed, 0), line(71, 4, 9, rollout.RunRolledBack, 0)},
			[]runEnd{{4, false, minute(3), minute(9), true}},
		},
		"two runs, and what is told after the end of one": {
			[]rollout.Entry{
				line(1, 1, 0, rollout.RunCreated, 0), line(2, 1, 1, rollout.RunRolledBack, 0), line(3, 1, 2, rollout.WorkNotDone, 0), line(4, 0, 2, rollout.VerbAnswered, 0),
				line(5, 2, 3, rollout.RunCreated, 0), line(6, 2, 4, rollout.StageStarted, 500), line(7, 2, 8, rollout.RunPromoted, 10_000), line(8, 3, 9, rollout.RunCreated, 0),
			},
			[]runEnd{{1, false, minute(0), minute(1), false}, {2, true, minute(3), minute(8), true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runEnds(tc.history), cmp.AllowUnexported(runEnd{})); diff != "" {
				t.Errorf("the ends differ (-want +got):\n%s", diff)
			}
		})
	}
}

// released is a release of two Deployments, or with a clone, whose run 3 has ended.
func released(change ...func(*v1alpha1.ABRelease)) *v1alpha1.ABRelease {
	workload := func(name string) *v1alpha1.VariationWorkload {
		return &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: name}
	}
	r := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pay", UID: "release"},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "pay", Stable: "stable", Rollout: &v1alpha1.Rollout{RequestedBy: "bob"},
			Variations: []v1alpha1.Variation{{Name: "stable", Workload: workload("web")}, {Name: "canary", Workload: workload("web-next")}},
		},
		Status: v1alpha1.ABReleaseStatus{ActiveVariation: "stable", Rollout: &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{
			Number: 3, Author: "alice", From: v1alpha1.VariationRevision{Variation: "stable", Hash: "old"}, To: v1alpha1.VariationRevision{Variation: "canary", Hash: "new"},
		}}},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func cloned(changed *v1alpha1.VariationRevision) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) {
		r.Spec.Variations[1].Workload, r.Spec.Variations[1].Clone = nil, &v1alpha1.VariationClone{}
		r.Status.Rollout.Run.Clone = &v1alpha1.RolloutClone{Changed: changed}
	}
}

func TestWhatIsAssessedOfARun(t *testing.T) {
	of := func(change func(*v1alpha1.EffectivenessAssessmentSpec)) *v1alpha1.EffectivenessAssessmentSpec {
		s := &v1alpha1.EffectivenessAssessmentSpec{
			Subject:       v1alpha1.AssessmentSubject{Release: &v1alpha1.AssessedRun{Name: "pay", UID: "release", Run: 3}},
			CorrelationID: "release", RequestedBy: "alice", Action: v1alpha1.AssessedPromote,
			Target: v1alpha1.AssessedTarget{BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-next"}, BaselineName: "deployments.apps.web-next"},
			Signal: v1alpha1.AssessedSignal{APIVersion: "v1", Kind: "Service", Name: "pay"}, DriftTime: *at(0),
			PreHash: "old", PostHash: "new", Execution: v1alpha1.ExecutionDone, WrittenTime: at(time.Hour), Windows: windowsOf(nil),
		}
		change(s)
		return s
	}
	web := func(s *v1alpha1.EffectivenessAssessmentSpec) {
		s.Target.Name, s.Target.BaselineName = "web", "deployments.apps.web"
	}
	back := func(s *v1alpha1.EffectivenessAssessmentSpec) {
		web(s)
		s.Action, s.PreHash, s.PostHash = v1alpha1.AssessedRollback, "new", "old"
	}
	tests := map[string]struct {
		release *v1alpha1.ABRelease
		end     runEnd
		want    *v1alpha1.EffectivenessAssessmentSpec // nil for none
	}{
		"a promotion": {released(), runEnd{number: 3, promoted: true, moved: true}, of(func(*v1alpha1.EffectivenessAssessmentSpec) {})},
		"a rollback":  {released(), runEnd{number: 3, moved: true}, of(back)},
		"a rollback before the first request": {released(), runEnd{number: 3}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			back(s)
			s.Execution, s.WrittenTime = v1alpha1.ExecutionNone, nil
		})},
		"the promotion of a clone": {released(cloned(&v1alpha1.VariationRevision{Hash: "changed"})), runEnd{number: 3, promoted: true, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			web(s)
			s.PostHash = "changed"
		})},
		"the promotion of a clone whose change was not seen": {released(cloned(nil)), runEnd{number: 3, promoted: true, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			web(s)
			s.PostHash = ""
		})},
		"the rollback of a clone": {released(cloned(nil)), runEnd{number: 3, moved: true}, of(back)},
		"a run that another one has followed": {released(), runEnd{number: 2, promoted: true, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			web(s)
			s.Subject.Release.Run, s.RequestedBy, s.PreHash, s.PostHash = 2, "bob", "", ""
		})},
		"a run without an author": {released(func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Author, r.Spec.Rollout = "", nil }), runEnd{number: 3, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			back(s)
			s.RequestedBy = "system:auto"
		})},
		"groups without a Service": {released(func(r *v1alpha1.ABRelease) {
			r.Spec.ServiceName = ""
			for i := range r.Spec.Variations {
				v := &r.Spec.Variations[i]
				v.Group, v.Workload = &v1alpha1.VariationGroup{Kind: "Deployment", Name: v.Workload.Name}, nil
			}
		}), runEnd{number: 3, promoted: true, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.Signal = v1alpha1.AssessedSignal{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-next"}
		})},
		"a job": {released(func(r *v1alpha1.ABRelease) { r.Spec.Variations[0].Workload.Kind = v1alpha1.VariationJob }), runEnd{number: 3, moved: true}, of(func(s *v1alpha1.EffectivenessAssessmentSpec) {
			back(s)
			s.Target.APIVersion, s.Target.Kind, s.Target.BaselineName = "batch/v1", "Job", "jobs.batch.web"
		})},
		"a variation that is gone": {released(func(r *v1alpha1.ABRelease) { r.Spec.Variations[0].Name = "other" }), runEnd{number: 3, moved: true}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.end.began, tc.end.ended = noon, noon.Add(time.Hour)
			got, known := specOfRun(tc.release, &tc.end)
			if known != (tc.want != nil) {
				t.Fatalf("it is known: %t", known)
			}
			if diff := cmp.Diff(tc.want, &got); known && diff != "" {
				t.Errorf("the spec differs (-want +got):\n%s", diff)
			}
		})
	}
}
