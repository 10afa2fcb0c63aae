// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// monitored is an Alertmanager and a Prometheus by the clock of a world.
type monitored struct {
	w *world
	// firing are the alerts at a time since the write; a nil answer is none at all.
	firing func(since time.Duration) *alertmanager.Answer
	// value of the metric at a time since the write.
	value func(since time.Duration) float64
	// asked are the matchers and queries, in their order.
	asked []string
}

// Firing implements effectiveness.AlertSource. The watchdog was received just now.
func (m *monitored) Firing(_ context.Context, matchers []string) (alertmanager.Answer, error) {
	now := m.w.clock.Now()
	m.asked = append(m.asked, strings.Join(matchers, " "))
	if matchers[0] == `alertname="Watchdog"` {
		return alertmanager.Answer{Time: now, Alerts: []alertmanager.Alert{{UpdateTime: now, EndTime: now.Add(4 * time.Minute)}}}, nil
	}
	answer := m.firing(now.Sub(noon))
	if answer == nil {
		return alertmanager.Answer{}, &source.Error{Fault: source.Unreachable, Message: "no answer of Alertmanager: the connection is refused"}
	}
	return *answer, nil
}

// Query implements effectiveness.MetricSource.
func (m *monitored) Query(context.Context, string) (float64, error) { return 0, nil }

// QueryRange implements effectiveness.MetricSource.
func (m *monitored) QueryRange(_ context.Context, promQL string, window effect.Span) ([]prometheus.Series, error) {
	m.asked = append(m.asked, promQL)
	var s prometheus.Series
	for at := window.From; !at.After(window.To); at = at.Add(window.Step) {
		s.Values = append(s.Values, m.value(at.Sub(noon)))
	}
	return []prometheus.Series{s}, nil
}

// monitor has the world's assessor ask a source of alerts, and one of metrics.
func (w *world) monitor(m *monitored) {
	w.t.Helper()
	m.w = w
	figures, err := effectiveness.NewFigures(prom.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	asked := &effectiveness.Sources{Watchdog: "Watchdog", Figures: figures, Log: logr.Discard()}
	if m.firing != nil {
		asked.Alerts = m
		w.r.Alerts = &Alerts{Sources: asked, Pods: &Health{Live: w.client}}
		w.r.Sources[v1alpha1.ComponentAlerts] = w.r.Alerts
	}
	if m.value != nil {
		asked.Metrics = m
		w.r.Sources[v1alpha1.ComponentMetrics] = &Series{Sources: asked, Time: w}
	}
}

// alert is one that began at a time since the write, and that labels are about.
func alert(fingerprint string, since time.Duration, labels ...string) alertmanager.Alert {
	a := alertmanager.Alert{Alert: effect.Alert{Fingerprint: fingerprint, Name: "Errors", StartTime: noon.Add(since)}, Labels: map[string]string{"namespace": "shop"}}
	for i := 0; i < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

func firing(all ...alertmanager.Alert) *alertmanager.Answer { return &alertmanager.Answer{Alerts: all} }

// until has alerts fire up to a time since the write, and others from then on.
func until(end time.Duration, before, after *alertmanager.Answer) func(time.Duration) *alertmanager.Answer {
	return func(since time.Duration) *alertmanager.Answer {
		if since < end {
			return before
		}
		return after
	}
}

func TestAlertsOfAnAssessment(t *testing.T) {
	const m = time.Minute
	web := alert("web", -20*m, "deployment", "web")
	again := alert("web", 2*m, "deployment", "web")
	ofPod := alert("pod", -20*m, "pod", "web-1-0")
	beside := alert("cart", 3*m, "deployment", "cart")
	tests := map[string]struct {
		firing   func(time.Duration) *alertmanager.Answer
		want     end
		measured *v1alpha1.MeasuredAlerts
		decay    v1alpha1.AlertDecay
		beside   []string
		says     string // the message of the component
	}{
		"an alert that resolves before it is asked for": {until(2*m, firing(web), firing()), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * m},
			&v1alpha1.MeasuredAlerts{Before: 1, Resolved: 1}, "", nil, "1 alert resolved"},
		"an alert about a pod of the target": {until(2*m, firing(ofPod), firing()), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * m},
			&v1alpha1.MeasuredAlerts{Before: 1, Resolved: 1}, "", nil, "1 alert resolved"},
		"an alert that decays for a minute": {until(6*m, firing(web), firing()), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 6 * m},
			&v1alpha1.MeasuredAlerts{Before: 1, Resolved: 1}, v1alpha1.DecayResolved, nil, "1 alert resolved"},
		"defect 4: an alert that decays until the deadline": {until(time.Hour, firing(web), nil), end{v1alpha1.AssessedAlertDecayTimeout, v1alpha1.VerdictInconclusive, 5_333, v1alpha1.IntegrityUnchanged, 30 * m},
			&v1alpha1.MeasuredAlerts{Before: 1, Firing: 1}, v1alpha1.DecayTimedOut, nil, "1 alert fires"},
		"an alert that fires again since the write": {until(m, firing(web), firing(again)), end{v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 5_333, v1alpha1.IntegrityUnchanged, 5 * m},
			&v1alpha1.MeasuredAlerts{Before: 1, Firing: 1, New: 1}, "", nil, "1 alert fires, 1 of them since the write"},
		"a new alert of another workload lowers no score": {until(m, firing(), firing(beside, beside)), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * m},
			&v1alpha1.MeasuredAlerts{}, "", []string{"alert Errors began to fire in the namespace"}, "no alert fired before, and no alert fires"},
		"a source that is away": {until(0, nil, nil), end{v1alpha1.AssessedPartial, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 30 * m},
			nil, "", nil, "no answer of Alertmanager: the connection is refused"},
		"defect 17: a source that comes back is asked again": {until(7*m, nil, firing()), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 7 * m},
			&v1alpha1.MeasuredAlerts{}, "", nil, "no alert fired before, and no alert fires"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(), twoPods(true, true)...)
			w.monitor(&monitored{firing: tc.firing})
			a := w.run()
			if diff := cmp.Diff(tc.want, endOf(a)); diff != "" {
				t.Errorf("the end (-want +got):\n%s", diff)
			}
			c := componentIn(&a.Status, v1alpha1.ComponentAlerts)
			if diff := cmp.Diff(tc.measured, c.Alerts); diff != "" || c.Message != tc.says {
				t.Errorf("the component says %q, want %q (-want +got):\n%s", c.Message, tc.says, diff)
			}
			if diff := cmp.Diff(tc.beside, a.Status.SideEffects); diff != "" || a.Status.AlertDecay != tc.decay {
				t.Errorf("the decay is %q, want %q; side effects (-want +got):\n%s", a.Status.AlertDecay, tc.decay, diff)
			}
		})
	}
}

func TestTheMatchersOfAPolicyAreAsked(t *testing.T) {
	a := written(func(spec *v1alpha1.EffectivenessAssessmentSpec) {
		spec.Alerts = &v1alpha1.EffectAlerts{Matchers: []v1alpha1.AlertMatcher{{Label: "service", Value: "$(name)"}, {Label: "severity", Operator: v1alpha1.MatchNotMatches, Value: "info|none"}}}
	})
	w := newWorld(t, a, twoPods(true, true)...)
	m := &monitored{firing: until(0, nil, firing())}
	w.monitor(m)
	w.run()
	want := []string{`service="web" severity!~"info|none"`, `alertname="Watchdog"`, `service="web" severity!~"info|none"`, `alertname="Watchdog"`}
	if diff := cmp.Diff(want, m.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No more alerts are stored than an assessment can have, and those of after the write are none of before.
func TestTheAlertsOfBeforeAWriteAreRecalledOnce(t *testing.T) {
	var many []alertmanager.Alert
	for i := range 40 {
		many = append(many, alert(strings.Repeat("f", i+1), -time.Minute, "deployment", "web"))
	}
	many = append(many, many[0], alert("new", time.Second, "deployment", "web"))
	w := newWorld(t, written(), twoPods(true, true)...)
	w.monitor(&monitored{firing: until(time.Minute, firing(many...), firing())})
	if _, err := w.look(); err != nil {
		t.Fatal(err)
	}
	first := w.stored().Status.AlertsBefore
	if first == nil || len(first.Alerts) != 32 || !first.ReadTime.Time.Equal(noon) {
		t.Fatalf("the alerts of before the write are %+v", first)
	}
	if diff := cmp.Diff(first, w.run().Status.AlertsBefore); diff != "" {
		t.Errorf("they change (-want +got):\n%s", diff)
	}
}
