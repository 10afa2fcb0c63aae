// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// How long a plan may wait before that is told.
const (
	// untakenAfter: an executor that works takes a plan within seconds.
	untakenAfter = 15 * time.Minute
	// waitsLong is for what should pass by itself.
	waitsLong = time.Hour
	// waitsVeryLong is for what has its time, such as a maintenance window of the
	// night, and for what a person has to do.
	waitsVeryLong = 12 * time.Hour
)

// long tells whether a plan waits for longer than such a wait should last.
func (w *WaitingPlan) long(now time.Time) bool {
	waits := now.Sub(w.Since)
	switch {
	case w.Why == "":
		return waits > untakenAfter
	case w.Person, w.Until.After(now):
		return waits > waitsVeryLong
	default:
		return waits > waitsLong
	}
}

// checkPlans tells of plans that wait, with what they wait for.
func checkPlans(s *Snapshot) []Finding {
	plans := s.Remediation.Plans
	if !plans.known() {
		return []Finding{plans.unknown("whether plans wait")}
	}
	var out []Finding
	for i := range plans.Value.Waiting {
		if w := &plans.Value.Waiting[i]; w.long(s.Now) {
			out = append(out, w.finding(s))
		}
	}
	if len(out) == 0 {
		return []Finding{{Severity: OK, Message: fmt.Sprintf("plans that have not ended: %d; no plan has waited for long", plans.Value.Unfinished)}}
	}
	return out
}

func (w *WaitingPlan) finding(s *Snapshot) Finding {
	f := Finding{Severity: Warning, Object: "RemediationPlan/" + w.Namespace + "/" + w.Name}
	since := w.Since.UTC().Format(time.RFC3339)
	switch {
	case w.Why == "":
		f.Message = "no executor has taken it since " + since
		f.Fix = s.executorLogFix()
		return f
	case w.Until.IsZero():
		f.Message = fmt.Sprintf("it waits since %s: %s", since, w.Why)
	default:
		f.Message = fmt.Sprintf("it waits since %s: %s (until %s)", since, w.Why, w.Until.UTC().Format(time.RFC3339))
	}
	f.Fix = fmt.Sprintf("kubectl plumbline plan show %s -n %s\nkubectl plumbline explain %s", w.Name, w.Namespace, w.Policy)
	if w.Person {
		f.Fix = fmt.Sprintf("let it go on, or end it:\nkubectl plumbline plan show %s -n %s\nkubectl plumbline plan cancel %s -n %s", w.Name, w.Namespace, w.Name, w.Namespace)
	}
	return f
}
