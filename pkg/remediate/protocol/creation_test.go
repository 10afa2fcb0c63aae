// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// aboutToMake is a plan whose executor has decided to send a creation, and has not.
func aboutToMake(t *testing.T) (*world, *executor) {
	t.Helper()
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, true)
	e := &executor{w: w, holder: "a"}
	until[WriteTarget](t, e)
	return w, e
}

// D4 of the review of remediation: nothing bounds how long a process sleeps between its
// decision and its request, and a creation was stored after the plan said Canceled.
func TestACreationWhoseProcessSleptIsNotStoredOnceThePlanIsCanceled(t *testing.T) {
	w, first := aboutToMake(t)
	w.ask(v1alpha1.PlanCancel)
	second := &executor{w: w, holder: "b"}
	second.finish(t)
	if w.plan.Status.Phase != v1alpha1.PlanCanceled {
		t.Fatalf("the plan is %s", w.plan.Status.Phase)
	}
	first.carry(fine)
	if w.broken != "" || w.objects[0].exists {
		t.Errorf("the target is there: %t; %s", w.objects[0].exists, w.broken)
	}
	first.finish(t)
	if got := w.plan.Status.Steps[0]; got.State != v1alpha1.StepFailed || got.Reason != v1alpha1.ReasonTargetReplaced {
		t.Errorf("the refusal of a request that slept made the step %s %s", got.State, got.Reason)
	}
}

// How a step ends whose creation came too late, when no other executor has the plan.
func TestEndsOfACreationThatComesTooLate(t *testing.T) {
	tests := map[string]struct {
		// sleeps before the decision, and before the request.
		decides, sends time.Duration
		// meanwhile happens before the request.
		meanwhile func(*world)
		want      string
	}{
		"sent in the last second, it is stored":                      {0, creatable, nil, "Verified , plan Succeeded, 1 writes"},
		"refused when nothing of it can be stored, it wrote nothing": {0, time.Hour, nil, "Skipped DeadlineExceeded, plan Skipped, 0 writes"},
		"refused while a copy may be under way, nobody knows":        {0, creatable + time.Second, nil, "Failed TargetReplaced, plan Failed, 0 writes"},
		"refused for another reason in time, nobody knows":           {0, 0, func(w *world) { w.forbidden = true }, "Failed TargetReplaced, plan Failed, 0 writes"},
		"refused beside an object of somebody else":                  {0, time.Hour, func(w *world) { w.objects[0].exists = true }, "Failed TargetMoved, plan Failed, 0 writes"},
		"refused beside the object of a copy that came before": {
			0, time.Hour, func(w *world) { *w.objects[0] = object{exists: true, uid: "uid-1", version: 11, hash: desiredHash} }, "Verified , plan Succeeded, 0 writes",
		},
		"decided in the last second, it is sent": {creatable, 0, nil, "Verified , plan Succeeded, 1 writes"},
		"decided too late, it is not sent":       {creatable + time.Second, 0, nil, "Skipped DeadlineExceeded, plan Skipped, 0 writes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, e := aboutToMake(t)
			w.now = w.now.Add(test.decides)
			e.decide()
			w.now = w.now.Add(test.sends)
			if test.meanwhile != nil {
				test.meanwhile(w)
			}
			e.carry(fine)
			e.finish(t)
			step := &w.plan.Status.Steps[0]
			if got := fmt.Sprintf("%s %s, plan %s, %d writes", step.State, step.Reason, w.plan.Status.Phase, w.effects[0]); got != test.want {
				t.Errorf("got %s, want %s; what happened:\n%q", got, test.want, step.Logs)
			}
			if w.broken != "" {
				t.Error(w.broken)
			}
		})
	}
}

// The API server admits a creation until a time, so both its sender and an executor that
// waits for its end have to know the time. No other step waits for the time.
func TestWithoutTheTimeOfTheAPIServerNoCreationBeginsOrEnds(t *testing.T) {
	const unknown = "wait 5s: the time of the API server is not known"
	gone, there := &Target{Read: No}, &Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
	tests := map[string]struct {
		makes   bool
		step    v1alpha1.StepState
		facts   StepFacts
		unknown bool
		want    string
	}{
		"its dry run waits":               {true, v1alpha1.StepReserved, StepFacts{Target: gone}, true, unknown},
		"its intent waits":                {true, v1alpha1.StepReserved, StepFacts{Target: gone, Tried: &Write{Result: Stored, Hash: desiredHash}}, true, unknown},
		"its end waits":                   {true, v1alpha1.StepIntent, StepFacts{Target: gone}, true, unknown},
		"its dry run is made by the time": {true, v1alpha1.StepReserved, StepFacts{Target: gone}, false, "protocol.Try {0}"},
		"its end is told by the time":     {true, v1alpha1.StepIntent, StepFacts{Target: gone}, false, "store Running, step Failed TargetReplaced"},
		"what is intended is sent: the API server knows its time": {
			true, v1alpha1.StepIntent, StepFacts{Target: gone, Tried: &Write{Result: Stored, Hash: desiredHash}}, true, "protocol.WriteTarget {0}",
		},
		"a write over a version does not wait": {false, v1alpha1.StepReserved, StepFacts{Target: there}, true, "protocol.Try {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.step)
			if test.makes {
				s.Plan.Spec.Plan.Targets[0].UID = ""
			}
			if i := s.Plan.Status.Steps[0].Intent; i != nil {
				i.UID, i.ResourceVersion, i.StorageTime = "", "", metav1.NewTime(epoch.Add(-outlived))
			}
			test.facts.Authorized, test.facts.Revision = Yes, Yes
			s.Facts.Steps, s.TimeUnknown = map[int32]StepFacts{0: test.facts}, test.unknown
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// The API server keeps a creation within the window, though its process sleeps.
func TestACreationIsAdmittedUntilItsWindowCloses(t *testing.T) {
	soon := epoch.Add(20 * time.Second)
	ask := func(s *State) { s.Plan.Spec.Control.Verb = v1alpha1.PlanExecute }
	urgent := func(s *State) {
		s.Facts.Brakes.UrgentPasses = true
		s.Plan.Spec.Plan.Targets[0].Severity.Urgency = v1alpha1.UrgencyImmediate
	}
	tests := map[string]struct {
		closes time.Time
		change func(*State)
		want   time.Time
	}{
		"a window that is always open":                   {time.Time{}, nil, NotAfter(epoch)},
		"a window that closes later":                     {epoch.Add(time.Hour), nil, NotAfter(epoch)},
		"a window that closes before":                    {soon, nil, soon.Add(-time.Second)},
		"a window that closes within a second":           {soon.Add(300 * time.Millisecond), nil, soon.Add(-time.Second)},
		"a window that the urgent passes, and is urgent": {soon, urgent, NotAfter(epoch)},
		"a window that a person passes":                  {soon, ask, NotAfter(epoch)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepIntent)
			s.Facts.Brakes.ClosesAt = test.closes
			if test.change != nil {
				test.change(s)
			}
			if got := s.LastSecond(0); !got.Equal(test.want) {
				t.Errorf("it is admitted until %s, want %s", got, test.want)
			}
		})
	}
}

// The times depend on each other.
func TestACreationIsOverBeforeItIsOutlived(t *testing.T) {
	for name, intended := range map[string]time.Time{
		"at a full second": epoch, "just before the next second": epoch.Add(time.Second - 1), "in another zone": epoch.In(time.FixedZone("IST", 19800)),
	} {
		t.Run(name, func(t *testing.T) {
			last := NotAfter(intended)
			if last.Nanosecond() != 0 || last.After(intended.Add(creatable)) {
				t.Errorf("it is admitted until %s", last)
			}
			// It is admitted in all of that second, by a clock that is behind, and stored within
			// its time-out.
			if end := last.Add(time.Second).Add(sendMargin); end.After(intended.Add(outlived)) {
				t.Errorf("it may be stored until %s, and is waited for until %s", end, intended.Add(outlived))
			}
			if least := 2 * RequestTimeout; last.Sub(intended) < least {
				t.Errorf("it has %s to arrive, and needs %s: the intent is stored, and the creation sent", last.Sub(intended), least)
			}
		})
	}
}
