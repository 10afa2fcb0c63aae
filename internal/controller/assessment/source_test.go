// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// scripted answers as a test says, by how often it was asked.
type scripted struct {
	asked  int
	answer func(n int) Answer
}

// Ask implements Source.
func (s *scripted) Ask(context.Context, *v1alpha1.EffectivenessAssessment, *Sight) Answer {
	s.asked++
	return s.answer(s.asked)
}

func answered(name v1alpha1.EffectComponent, score int32, bad, decaying bool) Answer {
	c := StoreComponent(name, effect.Component{State: effect.Assessed, Score: &score, Bad: bad})
	return Answer{AssessedComponent: c, Decaying: decaying}
}

func TestAnswersOfSources(t *testing.T) {
	silent := Answer{AssessedComponent: v1alpha1.AssessedComponent{State: v1alpha1.ComponentNotAnswered, Message: "HTTP 503"}}
	resolved := answered(v1alpha1.ComponentAlerts, effect.Best, false, false)
	fires := answered(v1alpha1.ComponentAlerts, 0, true, false)
	decays := answered(v1alpha1.ComponentAlerts, 0, true, true)
	good := answered(v1alpha1.ComponentMetrics, effect.Best, false, false)
	always := func(a Answer) func(int) Answer { return func(int) Answer { return a } }
	from := func(n int, before, after Answer) func(int) Answer {
		return func(asked int) Answer {
			if asked < n {
				return before
			}
			return after
		}
	}
	type outcome struct {
		End            end
		Decay          v1alpha1.AlertDecay
		Alerts, Metric int
	}
	tests := map[string]struct {
		alerts, metrics func(int) Answer
		want            outcome
	}{
		"both answer at once": {always(resolved), always(good), outcome{end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute}, "", 1, 1}},
		"an alert that fires speaks against the write": {always(fires), always(good), outcome{
			end{v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 6_500, v1alpha1.IntegrityUnchanged, 5 * time.Minute}, "", 1, 1,
		}},
		"metrics that answer at the third time": {always(resolved), from(3, silent, good), outcome{
			end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 6 * time.Minute}, "", 1, 3,
		}},
		"metrics that never answer": {always(resolved), always(silent), outcome{
			end{v1alpha1.AssessedMetricsTimedOut, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 30 * time.Minute}, "", 1, 50,
		}},
		"alerts that never answer": {always(silent), always(good), outcome{
			end{v1alpha1.AssessedPartial, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 30 * time.Minute}, "", 50, 1,
		}},
		"an alert that decays, and resolves": {from(3, decays, resolved), always(good), outcome{
			end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 6 * time.Minute}, v1alpha1.DecayResolved, 3, 3,
		}},
		"an alert that decays until the deadline": {always(decays), always(good), outcome{
			end{v1alpha1.AssessedAlertDecayTimeout, v1alpha1.VerdictInconclusive, 6_500, v1alpha1.IntegrityUnchanged, 30 * time.Minute}, v1alpha1.DecayTimedOut, 50, 50,
		}},
		"an alert that decays, and fires again": {from(3, decays, fires), always(good), outcome{
			end{v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 6_500, v1alpha1.IntegrityUnchanged, 6 * time.Minute}, "", 3, 3,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(), twoPods(true, true)...)
			alerts, metrics := &scripted{answer: tc.alerts}, &scripted{answer: tc.metrics}
			w.r.Sources[v1alpha1.ComponentAlerts], w.r.Sources[v1alpha1.ComponentMetrics] = alerts, metrics
			a := w.run()
			got := outcome{endOf(a), a.Status.AlertDecay, alerts.asked, metrics.asked}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the outcome differs (-want +got):\n%s%s", diff, a.Status.Message)
			}
		})
	}
}

// A source that is not configured is stored as such, and no score counts it.
func TestASourceThatIsNotConfigured(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	for _, c := range w.run().Status.Components {
		want := v1alpha1.ComponentNotConfigured
		if c.Name == v1alpha1.ComponentHealth {
			want = v1alpha1.ComponentAssessed
		}
		if c.State != want {
			t.Errorf("%s is %s, want %s", c.Name, c.State, want)
		}
	}
}

// A source that stayed silent cost a write every 30 seconds until the deadline, 60 of them with the default windows.
func TestASourceThatStaysSilentCostsNoWriteForEachQuestion(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	metrics := &scripted{answer: func(asked int) Answer {
		if asked > 25 {
			return notAnswered(v1alpha1.ComponentMetrics, "HTTP 503")
		}
		return notAnswered(v1alpha1.ComponentMetrics, "no answer within 10s")
	}}
	w.r.Sources[v1alpha1.ComponentMetrics] = metrics
	w.until(v1alpha1.AssessmentAssessing)
	writes, asked := w.writes, metrics.asked
	for range 3 { // as events wake it
		if _, err := w.look(); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes != writes || metrics.asked != asked {
		t.Errorf("looks at one time ask %d times more, and write %d times", metrics.asked-asked, w.writes-writes)
	}
	end := w.run().Status
	if end.Reason != v1alpha1.AssessedMetricsTimedOut || metrics.asked != 50 || w.writes > 8 {
		t.Errorf("it ends as %s after %d questions and %d writes, want 50 questions and at most 8 writes", end.Reason, metrics.asked, w.writes)
	}
	if c := componentIn(&end, v1alpha1.ComponentMetrics); c == nil || c.Message != "HTTP 503" || end.AskedTime.Sub(noon) != 29*time.Minute+30*time.Second {
		t.Errorf("the last answer is %+v, of %s", c, end.AskedTime)
	}
}

// While an alert decayed, each metric that moved cost a write every 30 seconds until the deadline.
func TestMetricsThatMoveWhileAnAlertDecaysCostNoWriteForEachQuestion(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	const first = 9_000
	metrics := &scripted{answer: func(asked int) Answer {
		return answered(v1alpha1.ComponentMetrics, int32(first-asked), false, false) //nolint:gosec // few
	}}
	w.r.Sources[v1alpha1.ComponentMetrics] = metrics
	w.r.Sources[v1alpha1.ComponentAlerts] = &scripted{answer: func(int) Answer { return answered(v1alpha1.ComponentAlerts, 0, true, true) }}
	end := w.run().Status
	if end.Reason != v1alpha1.AssessedAlertDecayTimeout || metrics.asked < 40 || w.writes > 8 {
		t.Errorf("it ends as %s after %d questions and %d writes, want 40 questions and at most 8 writes", end.Reason, metrics.asked, w.writes)
	}
	if c := componentIn(&end, v1alpha1.ComponentMetrics); c == nil || c.Score == nil || int(*c.Score) != first-metrics.asked {
		t.Errorf("the end has %+v, want the last of %d answers", c, metrics.asked)
	}
}

// Metrics that are ill end the decay, also where no question before was stored.
func TestMetricsThatGetWorseEndTheDecayOfAnAlert(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	w.r.Sources[v1alpha1.ComponentMetrics] = &scripted{answer: func(asked int) Answer {
		return answered(v1alpha1.ComponentMetrics, int32(9_000-500*asked), false, false) //nolint:gosec // few
	}}
	w.r.Sources[v1alpha1.ComponentAlerts] = &scripted{answer: func(int) Answer { return answered(v1alpha1.ComponentAlerts, 0, true, true) }}
	end := w.run().Status
	if c := componentIn(&end, v1alpha1.ComponentMetrics); end.Reason != v1alpha1.AssessedFull || c == nil || *c.Score != 4_500 {
		t.Errorf("it ends as %s with %+v, want %s with a score of 4500", end.Reason, c, v1alpha1.AssessedFull)
	}
}

// An assessor that begins has no memory of the last question, and asks at once.
func TestAnAssessorThatBeginsAsksASilentSourceAtOnce(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	metrics := &scripted{answer: func(int) Answer { return notAnswered(v1alpha1.ComponentMetrics, "HTTP 503") }}
	w.r.Sources[v1alpha1.ComponentMetrics] = metrics
	w.until(v1alpha1.AssessmentAssessing)
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if _, err := w.look(); err != nil {
		t.Fatal(err)
	}
	asked := metrics.asked
	w.start()
	w.r.Sources[v1alpha1.ComponentMetrics] = metrics
	if result, err := w.look(); err != nil || metrics.asked != asked+1 || result.RequeueAfter != 30*time.Second {
		t.Errorf("it asked %d times, and looks again after %s: %v", metrics.asked-asked, result.RequeueAfter, err)
	}
}
