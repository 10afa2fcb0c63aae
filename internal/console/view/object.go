// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Object is what the page of an object is made from.
type Object struct {
	Baseline *v1alpha1.Baseline
	// Difference is that of the live object; nil if it could not be compared.
	Difference  *difference.Report
	Revisions   []v1alpha1.BaselineRevision
	Plans       []v1alpha1.RemediationPlan
	Assessments []v1alpha1.EffectivenessAssessment
	Outlook     Outlook
	Unread      Unread
	Now         time.Time
}

// ObjectOf shows the differences of an object, the users of the changes, and the history of the object, with
// its verbs.
func ObjectOf(in *Object) Page {
	b := in.Baseline
	p := Page{Title: wording.QualifiedName(b), Entry: DriftPath, Time: in.Now, Unread: in.Unread.sentences()}
	if in.Outlook.Unread != "" {
		p.Unread = append(p.Unread, "The decisions of the policies are unknown: "+in.Outlook.Unread)
	}
	p.Sections = []Section{
		{Title: "State", Lines: stateLines(b, in.Now), Facts: checksOf(b, in.Now)},
		{Title: "Differences", Table: in.differences(), Lines: in.asides()},
		{Title: "Next", Table: outlookOf(in)},
		objectForms(in),
		{Title: "Timeline", Table: timelineOf(in)},
	}
	return p
}

func stateLines(b *v1alpha1.Baseline, now time.Time) []string {
	lines := []string{wording.DescribeDrift(b, now), wording.DescribeAuthorized(b, now)}
	if isOverdue(b, now) {
		lines = append(lines, "The state may be old: "+overdueWords(b, now))
	}
	if q := b.Status.Quarantine; q != nil {
		lines = append(lines, wording.AppendReason(fmt.Sprintf("In quarantine since %s, by %s", wording.FormatTime(&q.StartTime, now), wording.NameActor(q.By)), q.Reason))
	}
	if b.Status.Contention != nil {
		lines = append(lines, wording.DescribeContention(b.Status.Contention, now))
	}
	return lines
}

func checksOf(b *v1alpha1.Baseline, now time.Time) []wording.Field {
	return []wording.Field{
		{Label: "Last check", Value: wording.FormatTime(b.Status.LastCheckTime, now)},
		{Label: "Next check", Value: wording.FormatTime(b.Status.NextCheckTime, now)},
		{Label: "Guards", Value: strings.Join(b.Status.Guards, ", ")},
		{Label: "Observed", Value: actions.ShortenHash(b.Status.Observed.Hash)},
		{Label: "Plan", Value: b.Status.PlanName},
	}
}

// differences is the difference and the blame in one: each path with its values, and the user who
// changed the path. Without the live object it has what the last check has found.
func (in *Object) differences() *Table {
	t := &Table{Columns: []string{"Path", "Authorized", "Live", "User", "Known by", "Since", "Drift", "Touches", "Field manager"}}
	if in.Difference != nil {
		t.Caption, t.Empty = "Differences between the authorized and the live object", "The live object has its authorized state."
		for i := range in.Difference.Changes {
			c := &in.Difference.Changes[i]
			path := strings.TrimSpace(wording.NamePath(c.Path) + " " + wording.NoteChange(c))
			t.Rows = append(t.Rows, append(texts(path, c.Before, c.After), blameCells(in.findingAt(c.Path), in.Now)...))
		}
		return t.cut()
	}
	t.Caption, t.Empty = "Differences that the last check has found, worst first", "The status lists no difference."
	for i := range in.Baseline.Status.Findings {
		f := &in.Baseline.Status.Findings[i]
		t.Rows = append(t.Rows, append(texts(wording.NamePath(f.Path), f.Before, f.After), blameCells(f, in.Now)...))
	}
	if more := actions.CountFindings(in.Baseline) - len(in.Baseline.Status.Findings); more > 0 {
		t.More = fmt.Sprintf("and %d more findings", more)
	}
	return t
}

// findingAt returns what the last check has found at a path; nil if nothing.
func (in *Object) findingAt(path string) *v1alpha1.Finding {
	for i := range in.Baseline.Status.Findings {
		if f := &in.Baseline.Status.Findings[i]; f.Path == path {
			return f
		}
	}
	return nil
}

// blameCells say who changed a path, and how that is known.
func blameCells(f *v1alpha1.Finding, now time.Time) []Cell {
	if f == nil {
		return texts(wording.Unknown, "since the last check", wording.Unknown, "", "", "")
	}
	return []Cell{
		text(wording.NameActor(f.Actor.User)), text(knownBy(&f.Actor)), age(&f.FirstSeenTime, now), text(string(f.Type)), text(string(f.Class)), text(f.Actor.FieldManager),
	}
}

func (in *Object) asides() []string {
	lines := wording.ListBreakGlass(in.Baseline.Status.Findings)
	for i := range in.Baseline.Status.Masks {
		lines = append(lines, wording.DescribeMask(&in.Baseline.Status.Masks[i]))
	}
	if in.Difference != nil {
		lines = append(lines, in.Difference.Unread...)
	}
	return lines
}

func outlookOf(in *Object) *Table {
	t := &Table{Caption: "Decision of each policy about the drift", Columns: []string{"Policy", "Verdict", "Command"}}
	for i := range in.Outlook.Explanations {
		e := &in.Outlook.Explanations[i]
		t.Rows = append(t.Rows, []Cell{link(pathOf(PoliciesPath, e.Policy), e.Policy), text(wording.DescribeVerdict(e, in.Now)), text(e.Command)})
	}
	switch {
	case in.Outlook.Unread != "":
		t.Empty = "No policy was asked."
	default:
		t.Empty = wording.DescribeUnexplained(in.Baseline, "")
	}
	return t
}

// happening is a line of the timeline.
type happening struct {
	at          metav1.Time
	what, about string
	path        string
}

// timelineOf joins what each kind knows about an object, the newest first.
func timelineOf(in *Object) *Table {
	all := slices.Concat(in.authorizations(), in.changes(), in.steps(), in.verdicts())
	slices.SortStableFunc(all, func(x, y happening) int { return y.at.Compare(x.at.Time) })
	t := &Table{Caption: "Events of the object, the newest first", Columns: []string{"Time", "Event", "About"}, Empty: "No time is known."}
	for _, h := range all {
		t.Rows = append(t.Rows, []Cell{
			{Text: wording.FormatTime(&h.at, in.Now), UTC: wording.FormatTimestamp(h.at)}, text(h.what), {Path: h.path, Text: h.about},
		})
	}
	return t.cut()
}

func (in *Object) authorizations() []happening {
	var all []happening
	for i := range in.Revisions {
		s := &in.Revisions[i].Spec
		all = append(all, happening{at: s.AuthorizationTime, what: "authorized", about: fmt.Sprintf("revision %d, by %s", s.Number, wording.NameAuthor(s.By, s.Release))})
	}
	if a := in.Baseline.Spec.Authorized; a != nil && len(all) == 0 {
		all = append(all, happening{at: a.AuthorizationTime, what: "authorized", about: fmt.Sprintf("revision %d, by %s", a.Number, wording.NameAuthor(a.By, a.Release))})
	}
	return all
}

// changes are the drifts, the reversals and the checks that the status knows.
func (in *Object) changes() []happening {
	var all []happening
	s := &in.Baseline.Status
	for i := range s.Findings {
		f := &s.Findings[i]
		all = append(all, happening{at: f.FirstSeenTime, what: "drifted", about: fmt.Sprintf("%s: %s, by %s", wording.NamePath(f.Path), wording.DescribeChange(f, false), wording.NameActor(f.Actor.User))})
	}
	for i := range s.Reversals {
		r := &s.Reversals[i]
		for n := range r.Places {
			place := &r.Places[n]
			all = append(all, happening{at: r.ObservedTime, what: "changed to and fro", about: fmt.Sprintf("%s, by %s", wording.NamePath(place.Path), wording.NameActor(place.By))})
		}
	}
	if s.LastCheckTime != nil {
		all = append(all, happening{at: *s.LastCheckTime, what: "checked", about: wording.DescribeState(in.Baseline)})
	}
	if s.RetirementTime != nil {
		all = append(all, happening{at: *s.RetirementTime, what: "retired"})
	}
	return all
}

func (in *Object) steps() []happening {
	var all []happening
	for i := range in.Plans {
		p := &in.Plans[i]
		for n := range p.Spec.Plan.Targets {
			target := &p.Spec.Plan.Targets[n]
			if target.BaselineName != in.Baseline.Name {
				continue
			}
			step, at := wording.StepOf(p, n), p.CreationTimestamp
			for _, later := range []*metav1.Time{step.StartTime, step.CompletionTime} {
				if !later.IsZero() {
					at = *later
				}
			}
			all = append(all, happening{at: at, what: string(target.Action), about: fmt.Sprintf("%s, step %d: %s", wording.PlanName(p), n, wording.DescribeStepState(&step)), path: pathOf(PlansPath, p.Namespace, p.Name)})
		}
	}
	return all
}

func (in *Object) verdicts() []happening {
	var all []happening
	for i := range in.Assessments {
		x := &in.Assessments[i]
		at := x.CreationTimestamp
		if x.Status.CompletionTime != nil {
			at = *x.Status.CompletionTime
		}
		all = append(all, happening{at: at, what: "assessed", about: x.Name + ": " + wording.DescribeEnd(x), path: pathOf(AssessmentsPath, x.Namespace, x.Name)})
	}
	return all
}
