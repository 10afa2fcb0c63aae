// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sources

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
)

// inhibits lets an alert about a node inhibit those about its workloads.
const inhibits = `
route: {receiver: "none"}
receivers: [{name: "none"}]
inhibit_rules:
- source_matchers: ['alertname="NodeDown"']
  target_matchers: ['severity="page"']
  equal: [node]
`

// alert is one about a workload, which its sender has just sent.
func alert(name, deployment string, starts time.Time, more map[string]string) monitoring.Alert {
	labels := map[string]string{"alertname": name, "namespace": "shop", "deployment": deployment}
	maps.Copy(labels, more)
	return monitoring.Alert{Labels: labels, Starts: starts, Ends: time.Now().Add(4 * time.Minute)}
}

func watchdog() monitoring.Alert {
	return monitoring.Alert{Labels: map[string]string{"alertname": "Watchdog"}, Starts: time.Now().Add(-time.Hour), Ends: time.Now().Add(4 * time.Minute)}
}

// Defect 8: an alert that is silenced or inhibited still fires, and each alert counts.
func TestARealAlertmanagerTellsWhichAlertsFire(t *testing.T) {
	t.Parallel()
	written := time.Now().Add(-10 * time.Minute)
	early, late := written.Add(-20*time.Minute), written.Add(time.Minute)
	ended := alert("HighErrorRate", "web", early, nil)
	ended.Ends = written.Add(30 * time.Second)
	page := map[string]string{"severity": "page", "node": "n1"}
	tests := map[string]struct {
		first, then []monitoring.Alert
		silenced    string // a deployment
		want        effect.Component
		outcome     effect.AlertOutcome
		beside      int
	}{
		"an alert that fires decays": {
			first: []monitoring.Alert{watchdog(), alert("HighErrorRate", "web", early, nil)},
			want:  effect.Component{State: effect.Assessed, Score: new(int32(0)), Bad: true, Why: "1 alert fires"}, outcome: effect.AlertOutcome{Before: 1, Firing: 1, Decaying: true},
		},
		"an alert that is resolved": {
			first: []monitoring.Alert{watchdog(), alert("HighErrorRate", "web", early, nil)}, then: []monitoring.Alert{ended},
			want: effect.Component{State: effect.Assessed, Score: new(int32(10_000)), Why: "1 alert resolved"}, outcome: effect.AlertOutcome{Before: 1, Resolved: 1},
		},
		"defect 8: an alert that is silenced fires": {
			first: []monitoring.Alert{watchdog(), alert("HighErrorRate", "web", early, nil)}, silenced: "web",
			want: effect.Component{State: effect.Assessed, Score: new(int32(0)), Bad: true, Why: "1 alert fires"}, outcome: effect.AlertOutcome{Before: 1, Firing: 1, Decaying: true},
		},
		"defect 8: an alert that is inhibited fires, beside another one": {
			first: []monitoring.Alert{alert("HighErrorRate", "web", early, page), alert("Slow", "web", early, nil)}, then: []monitoring.Alert{alert("NodeDown", "", early, map[string]string{"node": "n1"})},
			want: effect.Component{State: effect.Assessed, Score: new(int32(0)), Bad: true, Why: "2 alerts fire"}, outcome: effect.AlertOutcome{Before: 2, Firing: 2, Decaying: true},
		},
		"an alert that resolved and fires again": {
			first: []monitoring.Alert{alert("HighErrorRate", "web", early, nil)}, then: []monitoring.Alert{ended, alert("HighErrorRate", "web", late, nil)},
			want: effect.Component{State: effect.Assessed, Score: new(int32(0)), Bad: true, Why: "1 alert fires, 1 of them since the write"}, outcome: effect.AlertOutcome{Before: 1, Firing: 1, New: 1},
		},
		"an alert about another workload is beside": {
			first: []monitoring.Alert{watchdog()}, then: []monitoring.Alert{alert("HighErrorRate", "webshop", late, nil), alert("Old", "cart", early, nil)},
			want: effect.Component{State: effect.Assessed, Score: new(int32(10_000)), Why: "no alert fired before, and no alert fires"}, beside: 1,
		},
		"an alert about a pod of the workload": {
			first: []monitoring.Alert{{Labels: map[string]string{"alertname": "Crash", "namespace": "shop", "pod": "web-5d4f-abcde"}, Starts: early, Ends: time.Now().Add(time.Minute)}},
			want:  effect.Component{State: effect.Assessed, Score: new(int32(0)), Bad: true, Why: "1 alert fires"}, outcome: effect.AlertOutcome{Before: 1, Firing: 1, Decaying: true},
		},
		"no watchdog proves that alerts arrive": {
			first: []monitoring.Alert{alert("HighErrorRate", "web", early, nil)}, then: []monitoring.Alert{ended},
			want: effect.Component{State: effect.NotAnswered, Why: "no alert fires, and there is no proof that alerts arrive: name a watchdog"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := monitoring.StartAlertmanager(t, inhibits)
			sources := alertsOf(t, s)
			s.PostAlerts(tc.first...)
			q := effectiveness.Question{Target: web, WrittenTime: written}
			q.Before = sources.AskAlerts(t.Context(), &q).Firing
			if tc.silenced != "" {
				s.Silence("deployment", tc.silenced)
			}
			for _, a := range tc.then {
				s.PostAlerts(a)
			}
			answer := sources.AskAlerts(t.Context(), &q)
			got, outcome := effect.JudgeAlerts(q.Before, answer, written)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the component (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.outcome, outcome); diff != "" {
				t.Errorf("the outcome (-want +got):\n%s", diff)
			}
			if len(answer.Beside) != tc.beside {
				t.Errorf("%d alerts are beside, want %d", len(answer.Beside), tc.beside)
			}
		})
	}
}
