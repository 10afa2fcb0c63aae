// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// AskAlerts asks for the alerts that fire, and for a proof that alerts arrive if none is about the target.
func (s *Sources) AskAlerts(ctx context.Context, q *Question) effect.AlertAnswer {
	selected := q.Matchers
	if len(selected) == 0 {
		selected = effect.DefaultMatchers
	}
	matchers, err := effect.FormatMatchers(selected, &q.Target)
	if err != nil {
		return effect.AlertAnswer{Why: err.Error()}
	}
	var found alertmanager.Answer
	if failure := s.ask(q, alertmanager.Name, func() (err error) {
		found, err = s.Alerts.Firing(ctx, matchers)
		return err
	}); failure != nil {
		return effect.AlertAnswer{Why: failure.Message}
	}
	answer := effect.AlertAnswer{Read: true}
	for _, a := range found.Alerts {
		if len(q.Matchers) > 0 || q.Target.IsAbout(a.Labels) || slices.ContainsFunc(q.Before, func(b effect.Alert) bool { return b.Fingerprint == a.Fingerprint }) {
			answer.Firing = append(answer.Firing, a.Alert)
		} else if a.StartTime.After(q.WrittenTime) {
			answer.Beside = append(answer.Beside, a.Alert)
		}
	}
	if len(answer.Firing) == 0 {
		answer.Arrive = s.alertsArrive(ctx, q)
	}
	return answer
}

// alertsArrive looks for a proof that the absence of an alert means what it seems to mean.
func (s *Sources) alertsArrive(ctx context.Context, q *Question) bool {
	if s.Watchdog != "" {
		return s.watchdogArrives(ctx, q)
	}
	return s.Metrics != nil && s.rulesAreEvaluated(ctx, q)
}

// watchdogArrives asks for the alert that always fires.
func (s *Sources) watchdogArrives(ctx context.Context, q *Question) bool {
	var found alertmanager.Answer
	failure := s.ask(q, alertmanager.Name, func() (err error) {
		found, err = s.Alerts.Firing(ctx, []string{"alertname=" + strconv.Quote(s.Watchdog)})
		return err
	})
	return failure == nil && found.ProvesArrival()
}

// maxRuleAge is how old the newest firing alert of Prometheus may be, in seconds, for its rules to count as
// evaluated.
const maxRuleAge = 120

// rulesAreEvaluated asks Prometheus itself, which writes each alert that fires as the series ALERTS at each
// evaluation. The series must be fresh, and have none of the alerts of before the write.
func (s *Sources) rulesAreEvaluated(ctx context.Context, q *Question) bool {
	age, is := s.number(ctx, q, `time() - max(timestamp(ALERTS{alertstate="firing"}))`)
	if !is || age > maxRuleAge {
		return false
	}
	for _, a := range q.Before {
		if n, is := s.number(ctx, q, fmt.Sprintf(`count(ALERTS{alertstate="firing",alertname=%s,namespace=%s}) or vector(0)`,
			strconv.Quote(a.Name), strconv.Quote(q.Target.Namespace))); !is || n > 0 {
			return false
		}
	}
	return true
}

// number asks Prometheus for one number. An answer without a number is an answer, and no proof.
func (s *Sources) number(ctx context.Context, q *Question, promQL string) (value float64, is bool) {
	failure := s.ask(q, prometheus.Name, func() error {
		n, err := s.Metrics.Query(ctx, promQL)
		value, is = n, err == nil
		if errors.Is(err, prometheus.ErrUnreachable) {
			return err
		}
		return nil
	})
	return value, is && failure == nil
}
