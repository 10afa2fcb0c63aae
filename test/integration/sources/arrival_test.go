// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// rules have an alert that always fires, and one that fires while a series says so.
const rules = `
groups:
- name: shop
  rules:
  - {alert: Watchdog, expr: "vector(1)"}
  - {alert: HighErrorRate, expr: "max by (namespace, deployment) (errors > 0)"}
`

// errorsOf sets the series of errors.
func errorsOf(value float64) monitoring.Series {
	return monitoring.Series{Labels: map[string]string{"__name__": "errors", "namespace": "shop", "deployment": "web"}, Start: time.Now(), Step: time.Second, Values: []float64{value}}
}

// evaluating starts a Prometheus that sends its alerts to the Alertmanager. An alert lives for four seconds.
func evaluating(t *testing.T, alerts *monitoring.Server) *monitoring.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return monitoring.StartPrometheus(t, fmt.Sprintf(`
global: {evaluation_interval: 250ms}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, file, alerts.Address), "--web.enable-remote-write-receiver", "--rules.alert.resend-delay=1s")
}

// An alert vanishes when its sender dies, as it does when its cause is gone. Without the watchdog, and without
// the series ALERTS, the absence is no answer.
func TestAnAlertWhoseSenderDiedIsNotResolved(t *testing.T) {
	t.Parallel()
	alerts := monitoring.StartAlertmanager(t, `{route: {receiver: "none"}, receivers: [{name: "none"}]}`)
	metrics := evaluating(t, alerts)
	byWatchdog, bySeries := alertsOf(t, alerts), alertsOf(t, alerts)
	client, err := prometheus.New(source.Config{URL: metrics.URL()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bySeries.Watchdog, bySeries.Metrics = "", client
	q := effectiveness.Question{Target: web, WrittenTime: time.Now().Add(time.Hour)} // so that it began before
	state := func(sources *effectiveness.Sources) (effect.State, effect.AlertOutcome) {
		c, o := effect.JudgeAlerts(q.Before, sources.AskAlerts(t.Context(), &q), q.WrittenTime)
		return c.State, o
	}
	fires := func(what string) {
		t.Helper()
		metrics.WriteSeries(errorsOf(1))
		poll.Until(t, patience, what, func() error {
			if q.Before = byWatchdog.AskAlerts(t.Context(), &q).Firing; len(q.Before) == 0 {
				return errors.New("it does not fire")
			}
			return nil
		})
	}
	becomes := func(sources *effectiveness.Sources, what string, want effect.State) {
		t.Helper()
		poll.Until(t, patience, what, func() error {
			if got, o := state(sources); got != want || o.Firing > 0 {
				return fmt.Errorf("the component is %q, %+v", got, o)
			}
			return nil
		})
	}

	fires("the alert fires")
	metrics.WriteSeries(errorsOf(0))
	becomes(byWatchdog, "the alert is resolved, and the watchdog arrives", effect.Assessed)
	becomes(bySeries, "the alert is resolved, and Prometheus evaluates its rules", effect.Assessed)

	fires("the alert fires again")
	metrics.Stop()
	for name, sources := range map[string]*effectiveness.Sources{"watchdog": byWatchdog, "series": bySeries} {
		poll.Until(t, patience, "the alert vanishes, by "+name, func() error {
			got, o := state(sources)
			if got == effect.Assessed && o.Firing == 0 {
				t.Errorf("by the %s the alert of a dead sender is resolved", name)
				return nil
			}
			if got != effect.NotAnswered {
				return fmt.Errorf("the component is %q, %+v", got, o)
			}
			return nil
		})
	}
}
