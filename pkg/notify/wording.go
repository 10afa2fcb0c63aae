// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// quote writes text that comes from the cluster, not from us.
type quote func(string) string

// headline says in one sentence what happened, "" for an unknown type.
func headline(e Event, q quote) string {
	switch {
	case e.Release != nil:
		return releaseHeadline(e, q)
	case e.Guard != nil:
		return driftHeadline(e, q)
	}
	plan := q(subjectName(e))
	switch e.Type {
	case PlanCreated:
		return fmt.Sprintf("Remediation plan %s was created: %s", plan, plural.Of(e.Counts.Total, "target"))
	case PlanStarted:
		return fmt.Sprintf("Remediation plan %s has started: %s", plan, plural.Of(e.Counts.Total, "target"))
	case PlanCompleted:
		return fmt.Sprintf("Remediation plan %s is done: %s", plan, result(e.Counts))
	case PlanFailed:
		return fmt.Sprintf("Remediation plan %s failed: %s", plan, result(e.Counts))
	case PlanEscalated:
		if e.Plan.Namespace == "" { // it stands for no plan, and names the policy
			return fmt.Sprintf("Remediation policy %s tells people of drift: %s", plan, plural.Of(e.Counts.Total, "target"))
		}
		return fmt.Sprintf("Remediation plan %s needs a person: %s", plan, plural.Of(e.Counts.Total, "target"))
	case PlanIneffective:
		return fmt.Sprintf("Remediation plan %s did not help: %s", plan, plural.Of(len(e.Targets), "target"))
	default:
		return ""
	}
}

// subjectName is the name of the plan, release or guard that an event is about.
func subjectName(e Event) string {
	switch {
	case e.Release != nil:
		return e.Release.Namespace + "/" + e.Release.Name
	case e.Guard != nil:
		return e.Guard.fullName()
	case e.Plan.Namespace == "":
		return e.Plan.Name
	}
	return e.Plan.Namespace + "/" + e.Plan.Name
}

// result says what became of the targets, without the counts that are zero.
func result(c Counts) string {
	s := fmt.Sprintf("%d of %s succeeded", c.Succeeded, plural.Of(c.Total, "target"))
	if c.Failed != 0 {
		s += fmt.Sprintf(", %d failed", c.Failed)
	}
	if c.Skipped != 0 {
		s += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return s
}

// facts are the lines below the headline, without those that say nothing.
func facts(e Event, q quote) []string {
	var lines []string
	for _, fact := range []struct{ name, value string }{
		{"Why", e.Reason},
		{"Service", e.service()},
		{"Guard", e.guard()},
		{"Severity", string(e.Severity)},
		{"Environment", e.Environment},
		{"Policy", e.Policy},
		{"Initiated by", e.InitiatedBy},
		{"Correlation", e.CorrelationID},
	} {
		if fact.value != "" {
			lines = append(lines, fact.name+": "+q(fact.value))
		}
	}
	if !e.Time.IsZero() {
		lines = append(lines, "Time: "+e.Time.UTC().Format(time.RFC3339))
	}
	return lines
}

// service is the Service of a release; empty in other events.
func (e Event) service() string {
	if e.Release == nil {
		return ""
	}
	return e.Release.Service
}

// guard is the kind and the name of a guard; empty in other events.
func (e Event) guard() string {
	if e.Guard == nil {
		return ""
	}
	return strings.TrimSpace(e.Guard.Kind + " " + e.Guard.fullName())
}

// targetLine is one line about a target.
func targetLine(t Target, q quote) string {
	object := cmp.Or(t.Kind, "object")
	switch {
	case t.Namespace != "":
		object += " " + t.Namespace + "/" + t.Name
	case t.Name != "":
		object += " " + t.Name
	}
	line := "- " + q(object)
	if t.Reason != "" {
		line += ": " + q(t.Reason)
	}
	return line
}

// body writes headline, facts, targets and the link, in at most limit bytes: what
// does not fit of the targets is counted instead. link writes the link.
func body(e Event, q quote, link func(string) string, limit int) string {
	var b strings.Builder
	b.WriteString(headline(e, q) + "\n")
	for _, line := range facts(e, q) {
		b.WriteString(line + "\n")
	}
	end := ""
	if e.Link != "" {
		end = link(e.Link) + "\n"
	}
	const more = "- and 2147483647 more\n" // as long as such a line can be
	listed := 0
	for _, t := range e.Targets {
		line := targetLine(t, q) + "\n"
		if b.Len()+len(line)+len(more)+len(end) > limit {
			break
		}
		b.WriteString(line)
		listed++
	}
	if left := e.omitted() + len(e.Targets) - listed; left > 0 {
		fmt.Fprintf(&b, "- and %d more\n", left)
	}
	return b.String() + end
}
