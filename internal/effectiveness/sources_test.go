// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

var (
	written = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	web     = effect.Target{Namespace: "shop", Kind: "Deployment", Name: "web"}
)

// alerts answers like an Alertmanager, by the first matcher.
type alerts map[string]alertmanager.Answer

func (a alerts) Firing(_ context.Context, matchers []string) (alertmanager.Answer, error) {
	answer, is := a[matchers[0]]
	if !is {
		return answer, &source.Error{Fault: source.Unreachable, Message: "no answer of Alertmanager: the connection is refused", Cause: errors.New("dial tcp 10.0.0.1:9093")}
	}
	return answer, nil
}

// metrics answers like a Prometheus, by the text that a query begins with.
type metrics struct {
	numbers map[string]float64
	series  func(window int) ([]prometheus.Series, error)
	asked   int
}

var errNoNumber = errors.New("the result has 0 samples, want one")

func (m *metrics) Query(_ context.Context, promQL string) (float64, error) {
	for begin, n := range m.numbers {
		if strings.HasPrefix(promQL, begin) {
			return n, nil
		}
	}
	return 0, errNoNumber
}

func (m *metrics) QueryRange(context.Context, string, effect.Span) ([]prometheus.Series, error) {
	m.asked++
	return m.series((m.asked - 1) % 3)
}

func newSources(t *testing.T) (*Sources, *prom.Registry) {
	t.Helper()
	registry := prom.NewPedanticRegistry()
	figures, err := NewFigures(registry)
	if err != nil {
		t.Fatal(err)
	}
	return &Sources{Figures: figures, Log: logr.Discard()}, registry
}

func TestWhatProvesThatAlertsArrive(t *testing.T) {
	const inShop, dog = `namespace="shop"`, `alertname="Watchdog"`
	before := []effect.Alert{{Fingerprint: "f1", Name: "HighErrorRate", StartTime: written.Add(-time.Minute)}}
	received := func(ago time.Duration) alertmanager.Answer {
		return alertmanager.Answer{Time: written, Alerts: []alertmanager.Alert{{UpdateTime: written.Add(-ago), EndTime: written.Add(4*time.Minute - ago)}}}
	}
	const age, count = "time()", "count(ALERTS"
	tests := map[string]struct {
		alerts   alerts
		watchdog string
		metrics  *metrics
		want     effect.AlertAnswer
	}{
		"a watchdog of now":                               {alerts{inShop: {}, dog: received(0)}, "Watchdog", nil, effect.AlertAnswer{Read: true, Arrive: true}},
		"a watchdog whose sender died":                    {alerts{inShop: {}, dog: received(3 * time.Minute)}, "Watchdog", nil, effect.AlertAnswer{Read: true}},
		"no watchdog fires":                               {alerts{inShop: {}, dog: {Time: written}}, "Watchdog", nil, effect.AlertAnswer{Read: true}},
		"Alertmanager went away in between":               {alerts{inShop: {}}, "Watchdog", nil, effect.AlertAnswer{Read: true}},
		"no watchdog, and no Prometheus":                  {alerts{inShop: {}}, "", nil, effect.AlertAnswer{Read: true}},
		"no watchdog, and Prometheus evaluates":           {alerts{inShop: {}}, "", &metrics{numbers: map[string]float64{age: 15, count: 0}}, effect.AlertAnswer{Read: true, Arrive: true}},
		"Prometheus has evaluated nothing lately":         {alerts{inShop: {}}, "", &metrics{numbers: map[string]float64{age: 121, count: 0}}, effect.AlertAnswer{Read: true}},
		"no rule of Prometheus fires":                     {alerts{inShop: {}}, "", &metrics{}, effect.AlertAnswer{Read: true}},
		"the alert still fires in Prometheus":             {alerts{inShop: {}}, "", &metrics{numbers: map[string]float64{age: 15, count: 1}}, effect.AlertAnswer{Read: true}},
		"a watchdog is named, so Prometheus is not asked": {alerts{inShop: {}, dog: {}}, "Watchdog", &metrics{numbers: map[string]float64{age: 15, count: 0}}, effect.AlertAnswer{Read: true}},
		"Alertmanager is away":                            {alerts{}, "Watchdog", nil, effect.AlertAnswer{Why: "no answer of Alertmanager: the connection is refused"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newSources(t)
			s.Alerts, s.Watchdog = tc.alerts, tc.watchdog
			if tc.metrics != nil {
				s.Metrics = tc.metrics
			}
			got := s.AskAlerts(t.Context(), &Question{Target: web, Before: before, WrittenTime: written})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichAlertsAreAboutTheTarget(t *testing.T) {
	alert := func(fingerprint string, since time.Duration, labels map[string]string) alertmanager.Alert {
		return alertmanager.Alert{Alert: effect.Alert{Fingerprint: fingerprint, StartTime: written.Add(since)}, Labels: labels}
	}
	found := alertmanager.Answer{Alerts: []alertmanager.Alert{
		alert("web", -1, map[string]string{"namespace": "shop", "deployment": "web"}),
		alert("gone", -1, map[string]string{"namespace": "shop", "pod": "web-old"}), // a pod of before the write
		alert("cart", 1, map[string]string{"namespace": "shop", "deployment": "cart"}),
		alert("early", 0, map[string]string{"namespace": "shop", "deployment": "cart"}),
	}}
	q := Question{Target: web, WrittenTime: written, Before: []effect.Alert{{Fingerprint: "gone"}}}
	s, _ := newSources(t)
	s.Alerts = alerts{`namespace="shop"`: found, `service="web"`: found}
	names := func(all []effect.Alert) (out []string) {
		for _, a := range all {
			out = append(out, a.Fingerprint)
		}
		return out
	}
	got := s.AskAlerts(t.Context(), &q)
	if diff := cmp.Diff([][]string{{"web", "gone"}, {"cart"}}, [][]string{names(got.Firing), names(got.Beside)}); diff != "" {
		t.Errorf("by the default matchers (-want +got):\n%s", diff)
	}
	q.Matchers = []effect.Matcher{{Label: "service", Operator: effect.Equals, Value: "$(name)"}}
	if got := s.AskAlerts(t.Context(), &q); len(got.Firing) != 4 || got.Beside != nil {
		t.Errorf("by the policy's matchers %v fire, and %v beside", got.Firing, got.Beside)
	}
	q.Matchers[0].Value = "$(pod)"
	if got := s.AskAlerts(t.Context(), &q); got.Read || !strings.Contains(got.Why, "alerts.matchers[0].value: unknown placeholder") {
		t.Errorf("a matcher that cannot be used is %+v", got)
	}
}

func TestTheSeriesOfAQuery(t *testing.T) {
	one := func(labels string, values ...float64) []prometheus.Series {
		return []prometheus.Series{{Labels: labels, Values: values}}
	}
	tests := map[string]struct {
		windows [3][]prometheus.Series
		drift   time.Duration
		want    []effect.Series
	}{
		"a drift that was put back within a minute": {[3][]prometheus.Series{one("", 1), one("", 2), one("", 3)}, 59 * time.Second, []effect.Series{{Name: "q", Before: []float64{1}, During: []float64{2}, After: []float64{3}, Brief: true}}},
		"one series": {[3][]prometheus.Series{one("", 1), one("", 2), one("", 3)}, time.Hour, []effect.Series{{Name: "q", Before: []float64{1}, During: []float64{2}, After: []float64{3}}}},
		"defect 10: two series stay apart": {[3][]prometheus.Series{append(one("{b}", 1), one("{a}", 2)...), one("{b}", 3), one("{a}", 4)}, time.Hour,
			[]effect.Series{{Name: "q{a}", Before: []float64{2}, After: []float64{4}}, {Name: "q{b}", Before: []float64{1}, During: []float64{3}}}},
		"no series": {want: []effect.Series{{Name: "q", Why: "the query has no series"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newSources(t)
			s.Metrics = &metrics{series: func(window int) ([]prometheus.Series, error) { return tc.windows[window], nil }}
			got := s.AskMetrics(t.Context(), &Question{
				Target: web, DriftTime: written.Add(-tc.drift), WrittenTime: written, StabilizedTime: written, Now: written.Add(time.Hour), Queries: []effect.Query{{Name: "q", PromQL: "up"}},
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPrometheusThatIsAwayIsAskedOnce(t *testing.T) {
	queries := []effect.Query{{Name: "a", PromQL: "up"}, {Name: "b", PromQL: "up"}}
	tests := map[string]struct {
		fault source.Fault
		asked int
	}{
		"it does not answer":              {source.Unreachable, 1},
		"it refuses the token":            {source.Refused, 1},
		"it does not like the query":      {source.Failed, 2},
		"a query has too many series":     {source.TooLarge, 2},
		"it is something else altogether": {source.Malformed, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, registry := newSources(t)
			m := &metrics{series: func(int) ([]prometheus.Series, error) {
				return nil, &source.Error{Fault: tc.fault, Message: "because", Cause: errors.New("dial tcp 10.0.0.1:9090")}
			}}
			s.Metrics = m
			got := s.AskMetrics(t.Context(), &Question{Target: web, Queries: queries})
			if diff := cmp.Diff([]effect.Series{{Name: "a", Why: "because"}, {Name: "b", Why: "because"}}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if m.asked != tc.asked {
				t.Errorf("asked %d times, want %d", m.asked, tc.asked)
			}
			errs, err := testutil.GatherAndCount(registry, "plumbline_effectiveness_source_errors_total")
			if n := testutil.ToFloat64(s.Figures.errs.WithLabelValues("prometheus", labelOf(tc.fault))); err != nil || n != float64(tc.asked) || errs != 10 {
				t.Errorf("%v errors are counted, in %d series: %v", n, errs, err)
			}
			if n := testutil.ToFloat64(s.Figures.calls.WithLabelValues("prometheus")); n != float64(tc.asked) {
				t.Errorf("%v requests are counted", n)
			}
		})
	}
}
