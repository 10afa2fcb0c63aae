// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func TestAnnouncementsAreNotRepeated(t *testing.T) {
	a := newAnnouncements()
	e := specguard.Event{Reason: specguard.ReasonDriftDetected, Message: "m"}
	other := kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: "db"}
	if !a.first(webKey, e, epoch) || a.first(webKey, e, epoch.Add(quiet-1)) || !a.first(other, e, epoch) || !a.first(webKey, e, epoch.Add(quiet)) {
		t.Error("an event is told again too early or not at all")
	}
	for i := range 3 * maxTold {
		a.first(webKey, specguard.Event{Message: fmt.Sprint(i)}, epoch)
	}
	if len(a.last) > maxTold {
		t.Errorf("%d events are remembered", len(a.last))
	}
}

func TestNotesAreCutAtTheEdgeOfACharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		note := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢"}).Draw(t, "unit"), rapid.IntRange(300, 1100).Draw(t, "count"))
		recorder := events.NewFakeRecorder(2) // about the object that is gone, and about its Baseline
		r := &Reconciler{Recorder: recorder, told: newAnnouncements(), budget: newEventBudget()}
		event := specguard.Event{Type: specguard.EventWarning, Reason: specguard.ReasonDriftDetected, Message: note}
		r.announce(&subject{key: webKey, now: epoch, baseline: &v1alpha1.Baseline{}}, &decision{state: specguard.State{Drift: v1alpha1.StateMissing}}, news{Event: event})
		if len(recorder.Events) != 2 {
			t.Fatalf("%d events, want 2", len(recorder.Events))
		}
		for range 2 {
			got := strings.TrimPrefix(<-recorder.Events, string(event.Type)+" "+string(event.Reason)+" ")
			if len(got) > maxNote || !utf8.ValidString(got) || (len(note) <= maxNote && got != note) {
				t.Fatalf("a note of %d bytes became %d bytes, valid %t", len(note), len(got), utf8.ValidString(got))
			}
		}
	})
}

func TestAnEventIsToldOnceWhereThereIsAnObject(t *testing.T) {
	tests := map[string]struct {
		state specguard.State
		want  int
	}{
		"an object that drifts":         {specguard.State{Drift: v1alpha1.StateDrifted}, 1},
		"an object that is in sync":     {specguard.State{Drift: v1alpha1.StateInSync}, 1},
		"an object that is gone":        {specguard.State{Drift: v1alpha1.StateMissing}, 2},
		"an object that was removed":    {specguard.State{Drift: v1alpha1.StateInSync, RetiredAt: epoch}, 2},
		"an object that cannot be read": {specguard.State{Drift: v1alpha1.StateUnknown}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			r := &Reconciler{Recorder: recorder, told: newAnnouncements(), budget: newEventBudget()}
			e := specguard.Event{Type: specguard.EventWarning, Reason: specguard.ReasonDriftDetected, Message: "m"}
			r.announce(&subject{key: webKey, now: epoch, baseline: &v1alpha1.Baseline{}}, &decision{state: tc.state}, news{Event: e})
			if len(recorder.Events) != tc.want {
				t.Errorf("%d Events, want %d", len(recorder.Events), tc.want)
			}
		})
	}
}

// The executor tells about the same object how its step ended.
func TestADriftThatAPlanPutsBackEndsWithoutAnEventOfItsOwn(t *testing.T) {
	tests := map[string]struct {
		plan   string
		reason specguard.EventReason
		want   int
	}{
		"the drift of an object that a plan has is gone": {"plan", specguard.ReasonDriftResolved, 0},
		"the drift of an object is gone":                 {"", specguard.ReasonDriftResolved, 1},
		"an object that a plan has drifts":               {"plan", specguard.ReasonDriftDetected, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			metrics, err := NewMetrics(prometheus.NewRegistry(), testingclock.NewFakePassiveClock(epoch))
			if err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Recorder: recorder, Metrics: metrics, told: newAnnouncements(), budget: newEventBudget()}
			baseline := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{PlanName: tc.plan}}
			r.tell(&subject{key: webKey, now: epoch, baseline: baseline}, &decision{
				state:  specguard.State{Drift: v1alpha1.StateInSync},
				events: []news{{Event: specguard.Event{Type: specguard.EventNormal, Reason: tc.reason, Message: "m"}}},
			})
			if len(recorder.Events) != tc.want {
				t.Errorf("%d Events, want %d", len(recorder.Events), tc.want)
			}
		})
	}
}

func TestStatusWithoutNewsIsNotWritten(t *testing.T) {
	old := &v1alpha1.BaselineStatus{
		State: v1alpha1.StateInSync, LastCheckTime: &metav1.Time{Time: epoch},
		Observed: v1alpha1.ObservedState{UID: "u", ResourceVersion: "1"},
	}
	next := old.DeepCopy()
	next.Observed.ResourceVersion = "2"
	if !sameStatus(next, old) {
		t.Error("a look that finds nothing is written")
	}
	next.LastCheckTime = &metav1.Time{Time: epoch.Add(time.Hour)}
	if sameStatus(next, old) {
		t.Error("a check is not written")
	}
	next = old.DeepCopy()
	next.State = v1alpha1.StateDrifted
	if sameStatus(next, old) {
		t.Error("drift is not written")
	}
}

func TestTimesAreComparedAsTheyAreStored(t *testing.T) {
	status := &v1alpha1.BaselineStatus{FirstSeenTime: &metav1.Time{Time: epoch.Add(123 * time.Millisecond)}}
	stored := status.DeepCopy()
	if err := asStored(stored); err != nil {
		t.Fatal(err)
	}
	if err := asStored(status); err != nil {
		t.Fatal(err)
	}
	if !sameStatus(status, stored) || !stored.FirstSeenTime.Time.Equal(epoch) {
		t.Errorf("stored as %s", stored.FirstSeenTime)
	}
}
