// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

// planWith is a plan with one target.
func planWith(change func(*v1alpha1.PlanTarget)) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1", UID: "plan", CreationTimestamp: *at(-time.Hour)}}
	p.Spec.Plan = v1alpha1.PlannedRemediation{
		Policy: v1alpha1.PlanPolicy{Name: "nightly", UID: "policy"}, CorrelationID: "c", Requester: "alice",
		Targets: []v1alpha1.PlanTarget{{
			BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, BaselineName: "deployments.apps.web",
			UID: "web", DriftedHash: "drifted", DesiredHash: "desired", Action: v1alpha1.ActionReconcile, FirstSeenTime: *at(-time.Hour),
		}},
	}
	if change != nil {
		change(&p.Spec.Plan.Targets[0])
	}
	return p
}

func TestWhatIsAssessedOfAStep(t *testing.T) {
	intent := &v1alpha1.StepIntentRecord{UID: "web", PreHash: "before", StorageTime: *at(0)}
	result := &v1alpha1.StepResult{Hash: "after", UID: "web", Generation: 7, RecordTime: *at(time.Second)}
	of := func(change func(*v1alpha1.EffectivenessAssessmentSpec)) v1alpha1.EffectivenessAssessmentSpec {
		target := v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		s := v1alpha1.EffectivenessAssessmentSpec{
			Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: "nightly-1", UID: "plan"}},
			Policy:  v1alpha1.AssessedPolicy{Name: "nightly", UID: "policy"}, CorrelationID: "c", RequestedBy: "alice", Action: v1alpha1.AssessedAction(v1alpha1.ActionReconcile),
			Target:    v1alpha1.AssessedTarget{BaselineTarget: target, BaselineName: "deployments.apps.web", UID: "web"},
			Signal:    v1alpha1.AssessedSignal{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			DriftTime: *at(-time.Hour), PreHash: "drifted", Execution: v1alpha1.ExecutionDone, Windows: windowsOf(nil),
		}
		change(&s)
		return s
	}
	tests := map[string]struct {
		target func(*v1alpha1.PlanTarget)
		step   v1alpha1.PlanStep
		want   func(*v1alpha1.EffectivenessAssessmentSpec)
	}{
		"a step that was verified": {nil, v1alpha1.PlanStep{State: v1alpha1.StepVerified, Intent: intent, Result: result}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.PostHash, s.PostGeneration, s.WrittenTime = "before", "after", 7, at(time.Second)
		}},
		"a step that failed after its write": {nil, v1alpha1.PlanStep{State: v1alpha1.StepFailed, Intent: intent, Result: result}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.PostHash, s.PostGeneration, s.WrittenTime = "before", "after", 7, at(time.Second)
		}},
		"a step that failed, and may have written": {nil, v1alpha1.PlanStep{State: v1alpha1.StepFailed, Intent: intent}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.WrittenTime = "before", at(0)
		}},
		"a step that failed behind its fence": {nil, v1alpha1.PlanStep{State: v1alpha1.StepFailed, Intent: intent, Fence: "9"}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.Execution = "before", v1alpha1.ExecutionNone
		}},
		"a step that failed before its intent": {nil, v1alpha1.PlanStep{State: v1alpha1.StepFailed}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.Execution = v1alpha1.ExecutionNone
		}},
		"a step that was skipped": {nil, v1alpha1.PlanStep{State: v1alpha1.StepSkipped, Intent: intent}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.Execution = "before", v1alpha1.ExecutionNone
		}},
		"a step that was fenced": {nil, v1alpha1.PlanStep{State: v1alpha1.StepFenced, Intent: intent, Fence: "9"}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.Execution = "before", v1alpha1.ExecutionNone
		}},
		"an object that was made again has another uid": {func(t *v1alpha1.PlanTarget) { t.UID = "" }, v1alpha1.PlanStep{
			State: v1alpha1.StepVerified, Result: &v1alpha1.StepResult{Hash: "after", UID: "new", RecordTime: *at(time.Second)},
		}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.Target.UID, s.PostHash, s.WrittenTime = "new", "after", at(time.Second)
		}},
		"a result of an earlier executor has no uid": {nil, v1alpha1.PlanStep{
			State: v1alpha1.StepVerified, Result: &v1alpha1.StepResult{Hash: "after", RecordTime: *at(time.Second)},
		}, func(s *v1alpha1.EffectivenessAssessmentSpec) { s.PostHash, s.WrittenTime = "after", at(time.Second) }},
		"a step whose policy asks for the hashes of DD-EM-002": {nil, v1alpha1.PlanStep{
			State: v1alpha1.StepVerified, Intent: &v1alpha1.StepIntentRecord{PreHash: "before", DDEM002Hash: "d1", StorageTime: *at(0)},
			Result: &v1alpha1.StepResult{Hash: "after", DDEM002Hash: "d2", UID: "web", RecordTime: *at(time.Second)},
		}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.PostHash, s.WrittenTime = "before", "after", at(time.Second)
			s.DDEM002 = &v1alpha1.DDEM002Hashes{PreHash: "d1", PostHash: "d2"}
		}},
		"a step of which only the one of before is known": {nil, v1alpha1.PlanStep{
			State: v1alpha1.StepFailed, Intent: &v1alpha1.StepIntentRecord{PreHash: "before", DDEM002Hash: "d1", StorageTime: *at(0)},
		}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.PreHash, s.WrittenTime, s.DDEM002 = "before", at(0), &v1alpha1.DDEM002Hashes{PreHash: "d1"}
		}},
		"a step without any time": {nil, v1alpha1.PlanStep{State: v1alpha1.StepVerified}, func(s *v1alpha1.EffectivenessAssessmentSpec) {
			s.WrittenTime = at(-time.Hour)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(of(tc.want), specOf(planWith(tc.target), nil, &tc.step)); diff != "" {
				t.Errorf("the spec differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWindowsOfAPolicy(t *testing.T) {
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := map[string]struct {
		cooldown *metav1.Duration
		set      v1alpha1.RemediationEffectiveness
		want     v1alpha1.AssessmentWindows
	}{
		"a policy that says nothing":                {want: v1alpha1.AssessmentWindows{Stabilization: d(5 * time.Minute), Validity: d(30 * time.Minute)}},
		"a short cooldown bounds the stabilization": {cooldown: d(time.Minute), want: v1alpha1.AssessmentWindows{Stabilization: d(time.Minute), Validity: d(30 * time.Minute)}},
		"no cooldown leaves half a minute":          {cooldown: d(0), want: v1alpha1.AssessmentWindows{Stabilization: d(30 * time.Second), Validity: d(30 * time.Minute)}},
		"a long cooldown leaves five minutes":       {cooldown: d(24 * time.Hour), want: v1alpha1.AssessmentWindows{Stabilization: d(5 * time.Minute), Validity: d(30 * time.Minute)}},
		"a policy that says all": {d(time.Hour), v1alpha1.RemediationEffectiveness{
			Stabilization: d(10 * time.Second), Validity: d(time.Minute), AlertCheckDelay: d(20 * time.Second), PropagationDelay: d(time.Second),
		}, v1alpha1.AssessmentWindows{Stabilization: d(10 * time.Second), Validity: d(time.Minute), AlertCheckDelay: d(20 * time.Second), PropagationDelay: d(time.Second)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.RemediationPolicySpec{Safety: v1alpha1.RemediationSafety{Cooldown: tc.cooldown}, Effectiveness: tc.set}
			if diff := cmp.Diff(tc.want, windowsOf(spec)); diff != "" {
				t.Errorf("the windows differ (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(windowsOf(&v1alpha1.RemediationPolicySpec{}), windowsOf(nil)); diff != "" {
		t.Errorf("a policy that is gone has other windows (-want +got):\n%s", diff)
	}
}
