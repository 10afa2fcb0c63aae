// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Each event is logged once, when what it tells of is stored.
func TestWhatTheLogTellsOfAnAssessment(t *testing.T) {
	tests := map[string]struct {
		happens func(*world)
		want    []string
	}{
		"a repair that helps": {func(*world) {}, []string{
			"effectiveness.assessment.scheduled", "effectiveness.hash.computed", "effectiveness.health.assessed", "effectiveness.assessment.completed",
		}},
		"a fix that another writer undoes": {func(w *world) { w.target = nil; w.judge() }, []string{
			"effectiveness.assessment.scheduled", "effectiveness.hash.computed", "effectiveness.assessment.completed",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(), twoPods(true, true)...)
			var told []string
			w.r.Log = funcr.NewJSON(func(line string) {
				told = append(told, eventIn(t, line))
			}, funcr.Options{})
			tc.happens(w)
			w.run()
			if diff := cmp.Diff(tc.want, told); diff != "" {
				t.Errorf("the log differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheMetricsOfAssessments(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	if _, err := w.look(); err != nil {
		t.Fatal(err)
	}
	if got := w.r.Metrics.count(); got != 1 {
		t.Errorf("%v are in flight, want 1", got)
	}
	if got := w.r.Metrics.longestOverdue(); got != 0 {
		t.Errorf("before the deadline it is overdue for %v s", got)
	}
	w.clock.SetTime(noon.Add(30*time.Minute + 5*time.Second))
	if got := w.r.Metrics.longestOverdue(); got != 5 {
		t.Errorf("after the deadline it is overdue for %v s, want 5", got)
	}
	w.run()
	if flying, late := w.r.Metrics.count(), w.r.Metrics.longestOverdue(); flying != 0 || late != 0 {
		t.Errorf("%v are in flight, and overdue for %v s", flying, late)
	}
	if got := testutil.ToFloat64(w.r.Metrics.ended.WithLabelValues("expired", "inconclusive")); got != 1 {
		t.Errorf("%v have expired, want 1", got)
	}
	if got := testutil.CollectAndCount(w.r.Metrics.overdue); got != 1 {
		t.Errorf("the time from the deadline has %d series, want 1", got)
	}
}

func eventIn(t *testing.T, line string) string {
	t.Helper()
	var fields struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	return fields.Event
}
