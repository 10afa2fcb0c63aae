// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
}

// planOf is a plan of so many targets that no executor has looked at.
func planOf(targets int) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "plan", UID: "2d6f9c3e-0000-4000-8000-000000000001", CreationTimestamp: *at(0),
	}}
	for i := range targets {
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, v1alpha1.PlanTarget{UID: fmt.Sprint("target-", i)})
	}
	return p
}

// life draws the statuses of a plan, as executors store them one after another. Most of them come within one
// second, steps end in any order, and a step that is deferred gives its start back.
type life struct {
	*rapid.T
	plan   *v1alpha1.RemediationPlan
	second int
	lived  []*v1alpha1.RemediationPlan
}

func newLife(t *rapid.T) *life {
	l := &life{T: t, plan: planOf(rapid.IntRange(1, 4).Draw(t, "targets"))}
	l.store()
	l.plan.Status.Phase, l.plan.Status.Steps = v1alpha1.PlanCreated, make([]v1alpha1.PlanStep, len(l.plan.Spec.Plan.Targets))
	for i := range l.plan.Status.Steps {
		l.plan.Status.Steps[i] = v1alpha1.PlanStep{Index: int32(i), State: v1alpha1.StepPlanned} //nolint:gosec // few
	}
	l.store()
	for range rapid.IntRange(0, 24).Draw(t, "moves") {
		l.second += rapid.SampledFrom([]int{0, 0, 0, 1, 40, -3}).Draw(t, "seconds")
		l.moves(&l.plan.Status.Steps[rapid.IntRange(0, len(l.plan.Status.Steps)-1).Draw(t, "step")])
		l.store()
	}
	l.ends()
	return l
}

func (l *life) moves(step *v1alpha1.PlanStep) {
	switch state := step.State; {
	case state == v1alpha1.StepPlanned && rapid.IntRange(0, 5).Draw(l.T, "skips") > 0:
		step.State, step.StartTime, l.plan.Status.Phase = v1alpha1.StepReserved, at(l.second), v1alpha1.PlanRunning
		if l.plan.Status.StartTime == nil {
			l.plan.Status.StartTime = at(l.second)
		}
	case state == v1alpha1.StepReserved && rapid.Bool().Draw(l.T, "yields"):
		step.State, step.StartTime = v1alpha1.StepPlanned, nil
	case state == v1alpha1.StepPlanned, state == v1alpha1.StepReserved:
		l.end(step)
	}
}

func (l *life) end(step *v1alpha1.PlanStep) {
	step.State = rapid.SampledFrom([]v1alpha1.StepState{v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced}).Draw(l.T, "end")
	step.Message, step.CompletionTime = rapid.SampledFrom([]string{"", "it changed"}).Draw(l.T, "message"), at(l.second)
}

// ends ends the steps that have not ended, and the plan with them or later.
func (l *life) ends() {
	for i := range l.plan.Status.Steps {
		if step := &l.plan.Status.Steps[i]; step.State == v1alpha1.StepPlanned || step.State == v1alpha1.StepReserved {
			l.end(step)
		}
	}
	if rapid.Bool().Draw(l.T, "the plan ends later") {
		l.store()
	}
	l.plan.Status.Phase = rapid.SampledFrom([]v1alpha1.PlanPhase{v1alpha1.PlanSucceeded, v1alpha1.PlanFailed, v1alpha1.PlanCanceled}).Draw(l.T, "phase")
	l.plan.Status.CompletionTime, l.plan.Status.EndedReason = at(l.second), rapid.SampledFrom([]string{"", "INC-9"}).Draw(l.T, "reason")
	l.store()
}

func (l *life) store() {
	protocol.NoteEvents(&l.plan.Status)
	l.lived = append(l.lived, l.plan.DeepCopy())
}

func TestEventsOfThePrefixOfALifeAreAPrefixOfThoseOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		whole := Of(l.lived[len(l.lived)-1])
		for i, p := range l.lived {
			part := Of(p)
			if len(part) > len(whole) {
				t.Fatalf("status %d has %d events, and the last one %d", i, len(part), len(whole))
			}
			if diff := cmp.Diff(whole[:len(part)], part); diff != "" {
				t.Fatalf("status %d (-whole +part):\n%s", i, diff)
			}
		}
		checkIDs(t, whole)
		first, last := whole[0].Event, whole[len(whole)-1].Event
		if first.Type != "plan.created" || last.Type != "plan.completed" || *last.Progress != 1 {
			t.Fatalf("the events are %+v", whole)
		}
	})
}

// A watch leaves updates out, and a replica begins anew in between.
func TestNewsTellEachEventOnceWhateverAWatchLeavesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		var seen Seen
		var got []Entry
		for _, p := range l.lived[:len(l.lived)-1] {
			if rapid.Bool().Draw(t, "the watch tells the update") {
				got = append(got, seen.News(string(p.UID), Of(p))...)
			}
		}
		whole := Of(l.lived[len(l.lived)-1])
		got = append(got, seen.News(string(l.plan.UID), whole)...)
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Fatalf("(-whole +news):\n%s", diff)
		}
		if again := seen.News(string(l.plan.UID), whole); again != nil {
			t.Fatalf("the same status tells again %v", again)
		}
		seen.Keep(map[string]bool{string(l.plan.UID): true})
		if again := seen.News(string(l.plan.UID), whole); again != nil {
			t.Fatalf("an object that is kept tells again %v", again)
		}
		if seen.Keep(map[string]bool{"another": true}); rapid.Bool().Draw(t, "the object is deleted") {
			seen.Forget(string(l.plan.UID))
		}
		if again := seen.News(string(l.plan.UID), whole); len(again) != len(whole) {
			t.Fatalf("an object that is not known tells %v", again)
		}
	})
}

func checkIDs(t interface{ Fatalf(string, ...any) }, entries []Entry) {
	ids := map[ID]bool{}
	for i := range entries {
		id := entries[i].ID
		if parsed, err := ParseID(entries[i].Event.ID); err != nil || parsed != id || ids[id] {
			t.Fatalf("the id %q is read as %v (%v), is there twice: %v", entries[i].Event.ID, parsed, err, ids[id])
		}
		ids[id] = true
	}
}

func TestTheEventsOfAPlanHaveTheFieldsOfTheDesign(t *testing.T) {
	p := planOf(2)
	p.Status = v1alpha1.RemediationPlanStatus{
		Phase: v1alpha1.PlanPartialSuccess, StartTime: at(1), CompletionTime: at(3), EndedReason: "enough",
		Steps: []v1alpha1.PlanStep{
			{Index: 0, State: v1alpha1.StepVerified, StartTime: at(1), CompletionTime: at(2)},
			{Index: 1, State: v1alpha1.StepFailed, StartTime: at(1), CompletionTime: at(3), Message: "it is not ready"},
		},
	}
	protocol.NoteEvents(&p.Status)
	one := int32(1)
	p.Status.History = append(p.Status.History,
		v1alpha1.PlanEvent{Event: "target.dreamt", Step: &one, EventTime: *at(4)},
		v1alpha1.PlanEvent{Event: "target.started", Step: new(int32(7)), EventTime: *at(4)})
	want := []string{
		"plan.created  created 0 12:00:00 ", "plan.started  running 0 12:00:01 ", "target.started target-0 running 0 12:00:01 ",
		"target.completed target-0 succeeded 0.5 12:00:02 ", "target.started target-1 running 0.5 12:00:01 ",
		"target.failed target-1 failed 1 12:00:03 it is not ready", "plan.completed  partial_success 1 12:00:03 enough",
	}
	var got []string
	for _, e := range Of(p) {
		if e.Event.PlanID != string(p.UID) || e.Event.Namespace != "shop" || e.Event.Name != "plan" {
			t.Errorf("the event is about %+v", e.Event)
		}
		got = append(got, fmt.Sprintf("%s %s %s %v %s %s", e.Event.Type, e.Event.TargetID, e.Event.Status, *e.Event.Progress, e.Event.Timestamp.Format(time.TimeOnly), e.Event.Message))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnObjectOfAnotherKindHasNoEvents(t *testing.T) {
	if got := Of(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{UID: types.UID("e")}}); got != nil {
		t.Errorf("it has %v", got)
	}
}
