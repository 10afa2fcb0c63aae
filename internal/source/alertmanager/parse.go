// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"time"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// The bounds of an answer beside [source.MaxAnswer].
const (
	// MaxAlerts of one answer.
	MaxAlerts = 500
	// maxText bounds a fingerprint and the name of an alert, in bytes.
	maxText = 256
)

// Alert is an alert that fires.
type Alert struct {
	effect.Alert
	Labels map[string]string
	// UpdateTime is when the alert was received last, and EndTime when it vanishes unless it is received
	// again.
	UpdateTime, EndTime time.Time
}

// Answer are the alerts of one answer.
type Answer struct {
	Alerts []Alert
	// Time is when Alertmanager answered, by its own clock; zero if the answer does not say so.
	Time time.Time
}

// gettable is an alert of https://github.com/prometheus/alertmanager/blob/v0.28.1/api/v2/openapi.yaml.
type gettable struct {
	Fingerprint string            `json:"fingerprint"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	Labels      map[string]string `json:"labels"`
}

// Parse reads the alerts of an answer. Each error is a [source.Error]: an answer that is cut, that has too
// many alerts, or in which one alert lacks what alerts are compared by, counts as a whole or not at all.
func Parse(answer source.Answer) (Answer, error) {
	var all []gettable
	if err := answer.Decode(&all); err != nil {
		return Answer{}, err
	}
	switch {
	case all == nil:
		return Answer{}, answer.Errorf(source.Malformed, "the answer of %s is no list of alerts", Name)
	case len(all) > MaxAlerts:
		return Answer{}, answer.Errorf(source.TooLarge, "%d alerts match, want at most %d", len(all), MaxAlerts)
	}
	out := Answer{Alerts: make([]Alert, 0, len(all)), Time: answer.Time}
	for _, a := range all {
		if !a.isWhole() {
			return Answer{}, answer.Errorf(source.Malformed, "an alert lacks its fingerprint, its name, or one of its times")
		}
		out.Alerts = append(out.Alerts, Alert{
			Alert:  effect.Alert{Fingerprint: a.Fingerprint, Name: a.Labels["alertname"], StartTime: a.StartsAt},
			Labels: a.Labels, UpdateTime: a.UpdatedAt, EndTime: a.EndsAt,
		})
	}
	return out, nil
}

// isWhole says that the alert has what alerts are compared by. A name can be absent: Alertmanager takes
// alerts without one.
func (a *gettable) isWhole() bool {
	return a.Fingerprint != "" && len(a.Fingerprint) <= maxText && len(a.Labels["alertname"]) <= maxText &&
		!a.StartsAt.IsZero() && !a.EndsAt.IsZero() && !a.UpdatedAt.IsZero()
}

// freshness bounds how long ago an alert that proves something was received. By default Prometheus sends an
// alert at least every two minutes, and the alert stays for four, so an alert of a sender that has died
// stays for two minutes after the sender.
const freshness = 2 * time.Minute

// ProvesArrival says that one of the alerts, which always fire, proves that alerts arrive. Such an alert
// stays for a while after its sender has died, as all alerts of the sender do, and some vanish before
// others. Prometheus sends an alert twice or more in its life, so the alert proves something in the first
// half of its life alone.
func (a *Answer) ProvesArrival() bool {
	for _, alert := range a.Alerts {
		age, life := a.Time.Sub(alert.UpdateTime), alert.EndTime.Sub(alert.UpdateTime)
		if !a.Time.IsZero() && 2*age < life && age < freshness {
			return true
		}
	}
	return false
}
