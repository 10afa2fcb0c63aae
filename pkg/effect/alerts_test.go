// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatBecameOfTheAlerts(t *testing.T) {
	early, late := written.Add(-20*time.Minute), written.Add(2*time.Minute)
	errors := Alert{"f1", "HighErrorRate", early}
	slow := Alert{"f2", "Slow", early}
	again := Alert{"f1", "HighErrorRate", late}
	other := Alert{"f3", "Other", late}
	earlier := Alert{"f4", "NotSeenBefore", early}
	score := func(n int32) *int32 { return &n }
	tests := map[string]struct {
		before  []Alert
		answer  AlertAnswer
		want    Component
		outcome AlertOutcome
	}{
		"it is resolved": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true}, Component{Assessed, score(10_000), false, "1 alert resolved"}, AlertOutcome{Before: 1, Resolved: 1}},
		"none fired":     {nil, AlertAnswer{Read: true, Arrive: true}, Component{Assessed, score(10_000), false, "no alert fired before, and no alert fires"}, AlertOutcome{}},
		"it still fires, and may decay": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{errors}},
			Component{Assessed, score(0), true, "1 alert fires"}, AlertOutcome{Before: 1, Firing: 1, Decaying: true}},
		"one of two is resolved, and the other may decay": {[]Alert{errors, slow}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{slow}},
			Component{Assessed, score(0), true, "1 alert fires"}, AlertOutcome{Before: 2, Resolved: 1, Firing: 1, Decaying: true}},
		"it fires again since the write": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{again}},
			Component{Assessed, score(0), true, "1 alert fires, 1 of them since the write"}, AlertOutcome{Before: 1, Firing: 1, New: 1}},
		"another one fires since the write": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{other}},
			Component{Assessed, score(0), true, "1 alert fires, 1 of them since the write"}, AlertOutcome{Before: 1, Resolved: 1, Firing: 1, New: 1}},
		"one of two may decay, and the other is new": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{errors, other}},
			Component{Assessed, score(0), true, "2 alerts fire, 1 of them since the write"}, AlertOutcome{Before: 1, Firing: 2, New: 1}},
		"one that was not seen before does not decay": {[]Alert{errors}, AlertAnswer{Read: true, Arrive: true, Firing: []Alert{earlier}},
			Component{Assessed, score(0), true, "1 alert fires"}, AlertOutcome{Before: 1, Resolved: 1, Firing: 1}},
		"an alert that fires needs no proof that alerts arrive": {[]Alert{errors}, AlertAnswer{Read: true, Firing: []Alert{errors}},
			Component{Assessed, score(0), true, "1 alert fires"}, AlertOutcome{Before: 1, Firing: 1, Decaying: true}},
		"an alert that vanished because its sender died is no answer": {[]Alert{errors}, AlertAnswer{Read: true},
			Component{NotAnswered, nil, false, "no alert fires, and there is no proof that alerts arrive: name a watchdog"}, AlertOutcome{}},
		"the source is away": {[]Alert{errors}, AlertAnswer{Why: "connection refused"}, Component{NotAnswered, nil, false, "connection refused"}, AlertOutcome{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, outcome := JudgeAlerts(tc.before, tc.answer, written)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the component differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.outcome, outcome); diff != "" {
				t.Errorf("the outcome differs (-want +got):\n%s", diff)
			}
		})
	}
}
