// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// The arms of a run, as label values.
const (
	canaryArm = "canary"
	activeArm = "active"
)

// answer of a gate, as it is told apart from others.
type answer struct {
	point gates.Point
	time  time.Time
}

// kindLabel names the kind of a gate as the API does.
func kindLabel(kind gates.Kind) string {
	switch kind {
	case gates.KindQuery:
		return "Query"
	case gates.KindWebhook:
		return "Webhook"
	}
	return "Webhook" // there is no other one
}

// countAnswers counts each answer that a decision has taken once, by the state that followed. An answer of
// which the status tells alone was counted by the process that has asked.
func (m *RolloutMetrics) countAnswers(name types.NamespacedName, states []gates.State, answers []gates.Answer) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock == nil {
		return
	}
	for i := range states {
		s := &states[i]
		isOwn := slices.ContainsFunc(answers, func(a gates.Answer) bool {
			return a.Key == s.Key && a.Point == s.Point && a.Time.Truncate(time.Second).Equal(s.Time)
		})
		if is := (answer{s.Point, s.Time.UTC()}); isOwn && m.answered[name][s.Key] != is {
			if m.answered[name] == nil {
				m.answered[name] = map[gates.Key]answer{}
			}
			m.answered[name][s.Key] = is
			m.answers.WithLabelValues(kindLabel(s.Kind), string(s.Result)).Inc()
		}
	}
}
