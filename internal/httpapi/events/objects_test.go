// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

const uid = "51c9a0f2-1111-4222-8333-444455556666"

// shown writes entries as lines.
func shown(entries []Entry) (lines []string) {
	for i := range entries {
		e := &entries[i].Event
		lines = append(lines, fmt.Sprintf("%s %s %s %s", entries[i].ID.Place, e.Type, e.Status, e.Timestamp.Format(time.TimeOnly)))
	}
	return lines
}

func TestAReleaseTellsItsHistory(t *testing.T) {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
	if got := Of(r); got != nil {
		t.Errorf("a release without a run tells %v", got)
	}
	line := func(number int64, seconds int, event rollout.EventName, message string) v1alpha1.RolloutEvent {
		return v1alpha1.RolloutEvent{Number: number, EventTime: *at(seconds), Run: 2, Event: string(event), Message: message}
	}
	r.Status.Rollout = &v1alpha1.RolloutStatus{History: []v1alpha1.RolloutEvent{
		line(7, 0, rollout.RunCreated, "run 2"), line(8, 0, rollout.RunStarted, ""), line(9, 1, rollout.StageStarted, "Starting canary stage 1: 5%"),
		line(10, 2, rollout.StagePassed, "stage 1 passed: healthy"), line(11, 2, rollout.StageAdvanced, "5% → 25%"), line(12, 3, rollout.StageHasFailed, "Stage 2 failed health check: no"),
		line(13, 3, "ab.dreamt", ""), line(14, 3, rollout.RunRolledBack, ""), line(15, 4, rollout.RunPromoted, ""), line(16, 4, rollout.WaitOverdue, ""),
	}}
	all := Of(r)
	want := []string{
		"7 ab.created created 12:00:00", "8 ab.started running 12:00:00", "9 canary.stage_started running 12:00:01", "10 canary.stage_passed succeeded 12:00:02",
		"11 ab.stage_advanced running 12:00:02", "12 canary.stage_failed failed 12:00:03", "14 ab.rolled_back rolled_back 12:00:03", "15 ab.promoted completed 12:00:04",
		"16 ab.overdue running 12:00:04",
	}
	if diff := cmp.Diff(want, shown(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var stages []int32
	for _, e := range all {
		stages = append(stages, e.Event.StageNumber)
		if e.Event.ReleaseID != uid {
			t.Errorf("the event is about %+v", e.Event)
		}
	}
	if diff := cmp.Diff([]int32{0, 0, 1, 1, 0, 2, 0, 0, 0}, stages); diff != "" {
		t.Errorf("the stages (-want +got):\n%s", diff)
	}
	// Lines that the status drops change no id of those that it keeps.
	r.Status.Rollout.History = r.Status.Rollout.History[4:]
	if diff := cmp.Diff(all[4:], Of(r)); diff != "" {
		t.Errorf("of the newest lines (-want +got):\n%s", diff)
	}
}

func TestABaselineTellsItsPresentState(t *testing.T) {
	ready := func(seconds int, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, LastTransitionTime: *at(seconds), Message: "as it is"}}
	}
	tests := map[string]struct {
		status v1alpha1.BaselineStatus
		want   []string
	}{
		"that no assessor has looked at": {v1alpha1.BaselineStatus{}, nil},
		"without a condition":            {v1alpha1.BaselineStatus{State: v1alpha1.StateInSync}, nil},
		"in a state of tomorrow":         {v1alpha1.BaselineStatus{State: "Dreaming", Conditions: ready(1, "True")}, nil},
		"in sync":                        {v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Conditions: ready(1, "True")}, []string{"in_sync drift.in_sync in_sync 12:00:01"}},
		"drifted, which began before it was seen": {
			v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, FirstSeenTime: at(2), Conditions: ready(9, "False")}, []string{"drifted drift.drifted drifted 12:00:02"},
		},
		"not guarded any more": {v1alpha1.BaselineStatus{State: v1alpha1.StateNotGuarded, FirstSeenTime: at(2), Conditions: ready(9, "Unknown")}, []string{"not_guarded drift.not_guarded not_guarded 12:00:09"}},
		"in quarantine, and in another one before": {
			v1alpha1.BaselineStatus{
				State: v1alpha1.StateMissing, Conditions: ready(4, "False"),
				Quarantine: &v1alpha1.Quarantine{StartTime: *at(5)}, EndedQuarantine: &v1alpha1.EndedQuarantine{EndTime: *at(3)},
			},
			[]string{"quarantine_ended drift.quarantine_ended missing 12:00:03", "missing drift.missing missing 12:00:04", "quarantined drift.quarantined missing 12:00:05"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := Of(&v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}, Status: tc.status})
			if diff := cmp.Diff(tc.want, shown(all)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkIDs(t, all)
		})
	}
}

func TestAPolicyTellsItsPresentConditions(t *testing.T) {
	p := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "production", UID: uid, CreationTimestamp: *at(0)}}
	p.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: "True", LastTransitionTime: *at(2)}, {Type: v1alpha1.ConditionReady, Status: "Unknown", LastTransitionTime: *at(2)},
		{Type: v1alpha1.ConditionDegraded, Status: "True", LastTransitionTime: *at(1)}, {Type: "TargetsSelected", Status: "True", LastTransitionTime: *at(1)},
	}
	want := []string{
		"created policy.created created 12:00:00", "degraded policy.degraded degraded 12:00:01", "not_ready policy.not_ready not_ready 12:00:02", "stalled policy.stalled stalled 12:00:02",
	}
	if diff := cmp.Diff(want, shown(Of(p))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: "True", LastTransitionTime: *at(3)}, {Type: v1alpha1.ConditionDegraded, Status: "False", LastTransitionTime: *at(3)},
	}
	if diff := cmp.Diff([]string{"created policy.created created 12:00:00", "ready policy.ready ready 12:00:03"}, shown(Of(p))); diff != "" {
		t.Errorf("a policy that is ready (-want +got):\n%s", diff)
	}
}

// The API server bounds the message of a condition to 32 KiB, and JSON may spell each byte with six.
func TestAnEventIsSmall(t *testing.T) {
	p := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("n", 253), UID: uid}}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True", Message: strings.Repeat("\x00", 32<<10)}}
	for _, e := range Of(p) {
		if body, err := json.Marshal(e.Event); err != nil || len(body) > 16<<10 {
			t.Errorf("an event has %d bytes (%v)", len(body), err)
		}
	}
}
