// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// checkHistory: a line of the history stays, no line is there twice, and an end has its line.
func (w *world) checkHistory(old, next *v1alpha1.RemediationPlanStatus) {
	if len(next.History) < len(old.History) || len(old.History) > 0 && !reflect.DeepEqual(old.History, next.History[:len(old.History)]) {
		w.breaks("the history %v becomes %v", old.History, next.History)
	}
	lines := map[line]bool{}
	for i := range next.History {
		l := lineOf(&next.History[i])
		if lines[l] {
			w.breaks("the history has %v twice", l)
		}
		lines[l] = true
	}
	for i := range next.Steps {
		if step := &next.Steps[i]; ended(step) && step.CompletionTime != nil && !lines[line{endOf(step.State), step.Index}] {
			w.breaks("step %d has ended, and the history %v lacks that", i, next.History)
		}
	}
	if Final(next.Phase) && next.CompletionTime != nil && !lines[line{EventPlanCompleted, ofPlan}] {
		w.breaks("the plan has ended, and the history %v lacks that", next.History)
	}
}

func TestTheHistoryHasEachEventOnce(t *testing.T) {
	tests := map[string]struct {
		status v1alpha1.RemediationPlanStatus
		want   []string
	}{
		"a plan that was not looked at":     {v1alpha1.RemediationPlanStatus{}, nil},
		"a plan that waits":                 {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, Steps: []v1alpha1.PlanStep{{State: v1alpha1.StepPlanned}}}, nil},
		"a plan that was refused":           {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanFailed, CompletionTime: at(time.Second)}, []string{"1 plan.completed"}},
		"a plan that is sealed has no end":  {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSealing, StartTime: at(time.Second)}, []string{"1 plan.started"}},
		"a step that was skipped unstarted": {v1alpha1.RemediationPlanStatus{Steps: []v1alpha1.PlanStep{{State: v1alpha1.StepSkipped, CompletionTime: at(3 * time.Second)}}}, []string{"3 target.completed 0"}},
		"all of one second": {v1alpha1.RemediationPlanStatus{
			Phase: v1alpha1.PlanPartialSuccess, StartTime: at(2 * time.Second), CompletionTime: at(2 * time.Second),
			Steps: []v1alpha1.PlanStep{
				{Index: 0, State: v1alpha1.StepFailed, StartTime: at(2 * time.Second), CompletionTime: at(2 * time.Second)},
				{Index: 1, State: v1alpha1.StepVerified, StartTime: at(2 * time.Second), CompletionTime: at(2 * time.Second)},
			},
		}, []string{"2 plan.started", "2 target.started 0", "2 target.failed 0", "2 target.started 1", "2 target.completed 1", "2 plan.completed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			NoteEvents(&tc.status)
			once := tc.status.DeepCopy()
			NoteEvents(&tc.status)
			if diff := cmp.Diff(once, &tc.status); diff != "" {
				t.Errorf("noted twice (-once +twice):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, shownHistory(&tc.status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A step that waits for long gives its start back. It has started all the same, and starts no second time.
func TestAStartThatIsGivenBackStaysInTheHistory(t *testing.T) {
	first, second := metav1.NewTime(epoch), metav1.NewTime(epoch.Add(time.Hour))
	status := v1alpha1.RemediationPlanStatus{StartTime: &first, Steps: []v1alpha1.PlanStep{{State: v1alpha1.StepReserved, StartTime: &first}}}
	for _, start := range []*metav1.Time{&first, nil, &second} {
		status.Steps[0].StartTime = start
		NoteEvents(&status)
		if diff := cmp.Diff([]string{"0 plan.started", "0 target.started 0"}, shownHistory(&status)); diff != "" {
			t.Errorf("started at %v (-want +got):\n%s", start, diff)
		}
	}
}

func shownHistory(status *v1alpha1.RemediationPlanStatus) (lines []string) {
	for i := range status.History {
		e := &status.History[i]
		text := e.EventTime.Sub(epoch).String()
		text = text[:len(text)-1] + " " + e.Event
		if e.Step != nil {
			text += " " + strconv.Itoa(int(*e.Step))
		}
		lines = append(lines, text)
	}
	return lines
}
