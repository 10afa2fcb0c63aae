// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
)

// The widths of cells in the table of states, in characters.
const (
	changedValueWidth = 24
	nextWidth         = 60
)

// fights stands between the writers and the values of a contention.
const fights = " ⇄ "

// MarkState returns the mark of an object in the table of states: one column.
func MarkState(b *v1alpha1.Baseline) string {
	if b.Status.Contention != nil {
		return "‼"
	}
	switch actions.StandingOf(b) {
	case actions.StandingMissing, actions.StandingDrifted:
		return "✗"
	case actions.StandingUnknown:
		return "?"
	case actions.StandingInSync:
		return "✓"
	case actions.StandingRetired, actions.StandingNotGuarded:
		return "-"
	}
	return "?"
}

// ListWriters names the writers of a drift: those of a contention, or the writer of the worst finding and the number
// of the others. If wide, users have their full names.
func ListWriters(b *v1alpha1.Baseline, wide bool) string {
	name := NameWriter
	if wide {
		name = NameActor
	}
	var writers []string
	if b.Status.Contention != nil {
		for _, user := range b.Status.Contention.With {
			writers = append(writers, name(user))
		}
		return strings.Join(writers, fights)
	}
	for i := range b.Status.Findings {
		if user := name(b.Status.Findings[i].Actor.User); !slices.Contains(writers, user) {
			writers = append(writers, user)
		}
	}
	return countMore(writers)
}

// countMore gives the first text and the number of the others.
func countMore(texts []string) string {
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	return fmt.Sprintf("%s (+%d more)", texts[0], len(texts)-1)
}

// SummarizeChanges tells the worst finding of an object and the number of the others, or the reason of an unknown state.
func SummarizeChanges(b *v1alpha1.Baseline) string {
	if actions.StandingOf(b) == actions.StandingUnknown {
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return "not compared yet"
		}
		return Shorten(ready.Message, nextWidth)
	}
	if len(b.Status.Findings) == 0 {
		return ""
	}
	words := summarizeFinding(&b.Status.Findings[0], b.Status.Contention != nil)
	if more := actions.CountFindings(b) - 1; more > 0 {
		words += fmt.Sprintf(" (+%d more)", more)
	}
	return words
}

func summarizeFinding(f *v1alpha1.Finding, contended bool) string {
	field, arrow := NameLastField(f.Path), " → "
	if f.Path == "" {
		field = "object"
	}
	if contended {
		arrow = fights
	}
	switch f.Operation {
	case v1alpha1.OperationRemoved:
		return field + " removed"
	case v1alpha1.OperationAdded:
		if f.Path == "" {
			return field + " added"
		}
		return field + " added: " + FormatValue(f.After, changedValueWidth, false)
	case v1alpha1.OperationChanged:
	}
	return field + " " + FormatValue(f.Before, changedValueWidth, false) + arrow + FormatValue(f.After, changedValueWidth, false)
}

// Outlook has the decisions of policies about drifts.
type Outlook struct {
	Explanations []explain.Explanation
	// Unread tells why no policy was asked; empty if each was.
	Unread string
}

// find returns the explanation of an object that is nearest to a remediation; nil without one.
func (o *Outlook) find(b *v1alpha1.Baseline) *explain.Explanation {
	var best *explain.Explanation
	for i := range o.Explanations {
		e := &o.Explanations[i]
		if e.Namespace == b.Namespace && e.Baseline == b.Name && (best == nil || rankVerdict(e.Verdict) < rankVerdict(best.Verdict)) {
			best = e
		}
	}
	return best
}

// rankVerdict orders verdicts by their distance from a remediation.
func rankVerdict(v explain.Verdict) int {
	return slices.Index([]explain.Verdict{
		explain.UnderWay, explain.RepairedNow, explain.RepairedAt, explain.RepairedAfter, explain.Executable, explain.NotKnown, explain.NeverUnless,
	}, v)
}

// DescribeNext tells, for a drifted object, the next remediation or the reason against one.
func (o *Outlook) DescribeNext(b *v1alpha1.Baseline, now time.Time) string {
	if actions.StandingOf(b) > actions.StandingDrifted {
		return ""
	}
	e := o.find(b)
	switch {
	case b.Status.Contention != nil && (e == nil || e.Verdict != explain.UnderWay):
		return "contention: needs a decision"
	case e != nil:
		return Shorten(describeNextStep(e, now), nextWidth)
	case o.Unread != "":
		return Unknown
	}
	return "no policy selects the object"
}

func describeNextStep(e *explain.Explanation, now time.Time) string {
	switch e.Verdict {
	case explain.UnderWay:
		return "in plan " + e.Plan
	case explain.RepairedNow:
		return "remediation now"
	case explain.RepairedAt:
		return fmt.Sprintf("remediation in %s: %s", FormatDuration(e.At.Sub(now)), e.Because)
	case explain.RepairedAfter:
		return "remediation later: " + e.Because
	case explain.Executable:
		return "remediation when a person executes the plan"
	case explain.NeverUnless:
		return "not remediated: " + e.Because
	case explain.NotKnown:
		return "unknown: " + e.Because
	}
	return "unknown: " + string(e.Verdict)
}

// HeadStatus is the first line of the table of states: the drifted objects, the objects that policies remediate, and
// the newest check.
func HeadStatus(baselines []v1alpha1.Baseline, o *Outlook, now time.Time) string {
	s := Summarize(baselines)
	counts := []string{fmt.Sprintf("%d of %s drifted", s[actions.StandingDrifted], plural.Of(s.Total(), "object"))}
	for _, standing := range []actions.Standing{actions.StandingMissing, actions.StandingUnknown} {
		if n := s[standing]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, NameStanding(standing)))
		}
	}
	parts := append([]string{strings.Join(counts, ", ")}, o.countRemediations()...)
	if o.Unread != "" {
		parts = append(parts, "decisions of policies unknown: "+o.Unread)
	}
	var last metav1.Time
	for i := range baselines {
		if at := baselines[i].Status.LastCheckTime; at != nil && last.Before(at) {
			last = *at
		}
	}
	if !last.IsZero() {
		parts = append(parts, "last check "+FormatAgo(last, now))
	}
	return strings.Join(parts, " · ")
}

// countRemediations tells for each policy the number of drifts that it remediates without a change by a person.
func (o *Outlook) countRemediations() []string {
	counts, names := map[string]int{}, []string{}
	for i := range o.Explanations {
		e := &o.Explanations[i]
		if counts[e.Policy] == 0 && !slices.Contains(names, e.Policy) {
			names = append(names, e.Policy)
		}
		switch e.Verdict {
		case explain.UnderWay, explain.RepairedNow, explain.RepairedAt, explain.RepairedAfter:
			counts[e.Policy]++
		case explain.Executable, explain.NeverUnless, explain.NotKnown:
		}
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("policy %s remediates %d", name, counts[name]))
	}
	return parts
}

// CountOthers counts the objects that need no attention; empty without one.
func CountOthers(baselines []v1alpha1.Baseline) string {
	s := Summarize(baselines)
	var parts []string
	for _, standing := range []actions.Standing{actions.StandingInSync, actions.StandingRetired, actions.StandingNotGuarded} {
		if n := s[standing]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, NameStanding(standing)))
		}
	}
	return strings.Join(parts, " · ")
}
