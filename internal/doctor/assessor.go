// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// overdueAfter is how late a scheduled check may be: over a threshold on checks
// at once it is put off by minutes.
const overdueAfter = 15 * time.Minute

func checkLeader(s *Snapshot) []Finding {
	return leadership{AssessorName, "assessor", "an assessor", "objects are not compared, and drift is not seen", s.AssessorLease}.check(s)
}

// leadership is what replicas agree by who of them works.
type leadership struct {
	name, component string
	// one is one of them, such as "an executor"; harm is what is so while none leads.
	one, harm string
	lease     Read[Lease]
}

func (l leadership) check(s *Snapshot) []Finding {
	object, selector := "Lease/"+s.Namespace+"/"+l.name, " -l app.kubernetes.io/component="+l.component
	fix := "kubectl get pods -n " + s.Namespace + selector + "\nkubectl logs -n " + s.Namespace + selector + " --tail=50"
	switch lease := l.lease; {
	case !lease.known():
		f := lease.unknown("whether " + l.one + " leads")
		f.Object = object
		return []Finding{f}
	case !lease.present() || lease.Value.Holder == "":
		return []Finding{{Severity: Critical, Object: object, Fix: fix, Message: "no " + strings.TrimPrefix(l.one, "an ") + " leads: " + l.harm}}
	case s.Now.After(lease.Value.Renewed.Add(lease.Value.Duration)):
		return []Finding{{Severity: Critical, Object: object, Fix: fix, Message: fmt.Sprintf("%s was the last to lead and did not renew its lease since %s: %s",
			lease.Value.Holder, lease.Value.Renewed.UTC().Format(time.RFC3339), l.harm)}}
	default:
		return []Finding{{Severity: OK, Object: object, Message: lease.Value.Holder + " leads"}}
	}
}

// Add counts one Baseline; now is when it is looked at.
func (b *Baselines) Add(baseline *v1alpha1.Baseline, now time.Time) {
	status := &baseline.Status
	if !baseline.Guarded() {
		return
	}
	b.Total++
	name := baseline.Namespace + "/" + baseline.Name
	if status.State == v1alpha1.StateUnknown {
		b.Unread++
		b.UnreadNames = appendNamed(b.UnreadNames, name)
	}
	if status.LastCheckTime == nil {
		b.Unchecked++
	} else if b.OldestCheck.IsZero() || status.LastCheckTime.Time.Before(b.OldestCheck) {
		b.OldestCheck = status.LastCheckTime.Time
	}
	if status.NextCheckTime != nil && now.Sub(status.NextCheckTime.Time) > overdueAfter {
		b.Overdue++
		b.OverdueNames = appendNamed(b.OverdueNames, name)
	}
}

func appendNamed(names []string, name string) []string {
	if len(names) < maxNamed {
		names = append(names, name)
	}
	return names
}

func counted(total int, names []string) string {
	if total > len(names) {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), total-len(names))
	}
	return strings.Join(names, ", ")
}

func checkStaleness(s *Snapshot) []Finding {
	if !s.Baselines.known() {
		return []Finding{s.Baselines.unknown("whether checks are overdue")}
	}
	b := s.Baselines.Value
	var out []Finding
	if b.Unread > 0 {
		out = append(out, Finding{Severity: Warning, Message: fmt.Sprintf("%d of %d objects are in state Unknown, their last findings stand: %s", b.Unread, b.Total, counted(b.Unread, b.UnreadNames)),
			Fix: "look at the condition Ready of their Baselines, and at the log of the assessor"})
	}
	if b.Overdue > 0 {
		out = append(out, Finding{Severity: Warning, Message: fmt.Sprintf("%d of %d scheduled checks are overdue by more than %s: %s", b.Overdue, b.Total, overdueAfter, counted(b.Overdue, b.OverdueNames)),
			Fix: "look at assessor.leader and at the assessor's log. Many at once may wait for the driftThreshold of GuardDefaults or, without one, for assessor.driftThreshold of the chart (--drift-threshold)"})
	}
	if b.Unchecked > 0 {
		out = append(out, Finding{Severity: Warning, Message: fmt.Sprintf("%d of %d Baselines were never compared", b.Unchecked, b.Total), Fix: "look at assessor.leader and at the assessor's log"})
	}
	if len(out) > 0 {
		return out
	}
	if b.Total == 0 {
		return []Finding{{Severity: OK, Message: "no object is guarded, so no check is overdue"}}
	}
	return []Finding{{Severity: OK, Message: fmt.Sprintf("%d objects are guarded; the oldest comparison is of %s", b.Total, b.OldestCheck.UTC().Format(time.RFC3339))}}
}
