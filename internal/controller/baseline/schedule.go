// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"time"
)

// next says when to look at the object again without an event; zero is never.
func (r *Reconciler) next(s *subject, d *decision) time.Duration {
	if d.removed || d.due.IsZero() {
		return 0
	}
	return max(d.due.Sub(s.now), time.Millisecond)
}

// untilDue is the same for an object with nothing new.
func (r *Reconciler) untilDue(s *subject) time.Duration {
	if s.due.IsZero() {
		return 0
	}
	return max(s.due.Sub(s.now), time.Millisecond)
}

// plan collects what changes by time alone: the severity's next age, and the end
// of the retention.
func (r *Reconciler) plan(s *subject, d *decision) {
	if d.retry > 0 {
		d.dueBy(s.now.Add(d.retry))
	}
	if !d.state.RetiredAt.IsZero() {
		d.dueBy(d.state.RetiredAt.Add(r.Config.Retention))
		return
	}
	for i := range d.state.Findings {
		if edge, ok := nextAge(d.state.Findings[i].FirstSeenTime.Time, s.now); ok {
			d.dueBy(edge)
		}
	}
}

// ages are where the severity's age factor changes; the last one is the end.
var ages = []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour}

func nextAge(since, now time.Time) (time.Time, bool) {
	for _, age := range ages {
		if edge := since.Add(age); edge.After(now) {
			return edge, true
		}
	}
	return time.Time{}, false
}
