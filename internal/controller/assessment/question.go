// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// questionOf returns what an assessment asks the sources of the installation.
func questionOf(a *v1alpha1.EffectivenessAssessment) *effectiveness.Question {
	signal := &a.Spec.Signal
	q := &effectiveness.Question{
		Assessment: a.Namespace + "/" + a.Name,
		Target:     effect.Target{Namespace: cmp.Or(signal.Namespace, a.Namespace), Kind: signal.Kind, Name: signal.Name},
		DriftTime:  a.Spec.DriftTime.Time, WrittenTime: timeOf(a.Spec.WrittenTime),
	}
	if s := a.Status.Schedule; s != nil {
		q.StabilizedTime = s.StabilizedTime.Time
	}
	if a.Spec.Alerts != nil {
		q.Matchers = matchersOf(a.Spec.Alerts)
	}
	if a.Spec.Metrics != nil {
		q.Queries = queriesOf(a.Spec.Metrics)
	}
	if before := a.Status.AlertsBefore; before != nil {
		q.Before = alertsOf(before)
	}
	return q
}

func matchersOf(alerts *v1alpha1.EffectAlerts) []effect.Matcher {
	all := make([]effect.Matcher, 0, len(alerts.Matchers))
	for _, m := range alerts.Matchers {
		all = append(all, effect.Matcher{Label: m.Label, Operator: effect.Operator(cmp.Or(m.Operator, v1alpha1.MatchEquals)), Value: m.Value})
	}
	return all
}

// queriesOf returns the queries of a policy. A floor that is no number is 0, which pkg/effect refuses.
func queriesOf(metrics *v1alpha1.EffectMetrics) []effect.Query {
	if len(metrics.Queries) == 0 {
		return effect.DefaultQueries
	}
	all := make([]effect.Query, 0, len(metrics.Queries))
	for _, q := range metrics.Queries {
		floor, err := strconv.ParseFloat(string(q.Floor), 64)
		if err != nil {
			floor = 0
		}
		all = append(all, effect.Query{Name: q.Name, PromQL: q.Query, Objective: effect.Objective(q.Objective), Floor: floor})
	}
	return all
}

func alertsOf(before *v1alpha1.AlertsBefore) []effect.Alert {
	all := make([]effect.Alert, 0, len(before.Alerts))
	for _, a := range before.Alerts {
		all = append(all, effect.Alert{Fingerprint: a.Fingerprint, Name: a.Name, StartTime: a.StartTime.Time})
	}
	return all
}

// notAnswered is the answer of a source that has none.
func notAnswered(name v1alpha1.EffectComponent, why string) Answer {
	return Answer{AssessedComponent: StoreComponent(name, effect.Component{State: effect.NotAnswered, Why: why})}
}
