// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// maxTold is the bound of the schema for status.told.
const maxTold = 256

// memory remembers what was told of each policy. The status of the policy keeps the memory for
// another assessor; what has no room there is told once more, and a notification has the id
// that it had.
type memory struct {
	mu sync.Mutex
	// told has each escalation of a policy.
	told map[string]map[string]telling
}

// telling is the level at which an escalation was told, and when.
type telling struct {
	level v1alpha1.SeverityLevel
	at    time.Time
}

// news are those that were not told yet, or at a milder level: a channel may have been
// left out for that level. What is no more is forgotten, and would be news again.
func (m *memory) news(policy *v1alpha1.RemediationPolicy, all []escalation, at time.Time) []escalation {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.told[policy.Name]
	if !known {
		before = recall(policy.Status.Told)
	}
	now := make(map[string]telling, len(all))
	var news []escalation
	for _, e := range all {
		id, level := e.id(), e.level()
		told, known := now[id]
		if !known {
			told, known = before[id]
		}
		if !known || severity.CompareLevels(level, told.level) > 0 {
			news, told = append(news, e), telling{level, at}
		}
		now[id] = told
	}
	if m.told == nil {
		m.told = map[string]map[string]telling{}
	}
	m.told[policy.Name] = now
	return news
}

// recall reads what an assessor before has told.
func recall(told []v1alpha1.ToldEscalation) map[string]telling {
	tellings := make(map[string]telling, len(told))
	for _, t := range told {
		tellings[t.ID] = telling{level: t.Severity}
	}
	return tellings
}

// kept returns what the status of a policy is to keep at a time, and when that changes by time
// alone. A message that may still be on its way is not kept: it would be lost with the process.
// A policy of which this process has told nothing yet keeps what an assessor before has told.
func (m *memory) kept(policy *v1alpha1.RemediationPolicy, now time.Time) (told []v1alpha1.ToldEscalation, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tellings, known := m.told[policy.Name]
	if !known {
		return policy.Status.Told, time.Time{}
	}
	for id, t := range tellings {
		if delivered := t.at.Add(notify.DefaultRetry.Deadline); now.Before(delivered) {
			next = earlier(next, delivered)
			continue
		}
		told = append(told, v1alpha1.ToldEscalation{ID: id, Severity: t.level})
	}
	slices.SortFunc(told, func(a, b v1alpha1.ToldEscalation) int {
		return cmp.Or(severity.CompareLevels(b.Severity, a.Severity), cmp.Compare(a.ID, b.ID))
	})
	return told[:min(len(told), maxTold)], next
}

func (m *memory) forget(policy string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, policy)
}
