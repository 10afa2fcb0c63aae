// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
)

// Drift is what the page of drifts is made from.
type Drift struct {
	Baselines []v1alpha1.Baseline
	Outlook   Outlook
	Filter    DriftFilter
	Now       time.Time
}

// DriftFilter narrows the drifts down; an empty field lets all through.
type DriftFilter struct{ Namespace, Severity, Actor, State string }

// Outlook says what policies will do about drifts, and when.
type Outlook struct {
	Explanations []explain.Explanation
	// Unread says why no policy was asked; empty if all were.
	Unread string
}

// cell tells the outlook of an object in one sentence.
func (o *Outlook) cell(b *v1alpha1.Baseline, now time.Time) Cell {
	for i := range o.Explanations {
		e := &o.Explanations[i]
		if e.Namespace == b.Namespace && e.Baseline == b.Name {
			return Cell{Path: pathOf(PoliciesPath, e.Policy), Text: e.Policy + ": " + wording.DescribeVerdict(e, now)}
		}
	}
	if o.Unread != "" {
		return text("not known")
	}
	return text(wording.DescribeUnexplained(b, ""))
}

// severities and states are the values of the filters.
var (
	severities = []string{string(v1alpha1.SeverityCritical), string(v1alpha1.SeverityHigh), string(v1alpha1.SeverityMedium), string(v1alpha1.SeverityLow)}
	states     = []string{
		string(v1alpha1.StateMissing), string(v1alpha1.StateDrifted), string(v1alpha1.StateUnknown),
	}
)

// DriftOf lists the findings of all objects that are not in sync, worst first.
func DriftOf(in *Drift) Page {
	p := Page{Title: "Drift", Entry: DriftPath, Time: in.Now, Filters: []Filter{
		namespaceFilter(in.Filter.Namespace),
		{Name: "severity", Label: "Severity", Value: in.Filter.Severity, Options: severities},
		{Name: "actor", Label: "User", Value: in.Filter.Actor},
		{Name: "state", Label: "State", Value: in.Filter.State, Options: states},
	}}
	if in.Outlook.Unread != "" {
		p.Unread = append(p.Unread, "The decisions of the policies are unknown: "+in.Outlook.Unread)
	}
	drifted := keep(in.Baselines, in.selects)
	wording.SortWorstFirst(drifted)
	t := &Table{
		Caption: "Findings, worst first",
		Columns: []string{"Object", "State", "Severity", "Path", "Change", "User", "Known by", "Since", "Next"},
		Empty:   "No object differs from its authorized state.",
	}
	for i := range drifted {
		t.Rows = append(t.Rows, driftRows(in, &drifted[i])...)
	}
	p.Sections = []Section{{Title: "Objects", Lines: []string{wording.Summarize(in.Baselines).String()}}, {Title: "Findings", Table: t.cut()}}
	return p
}

func (in *Drift) selects(b *v1alpha1.Baseline) bool {
	level := ""
	if b.Status.Severity != nil {
		level = string(b.Status.Severity.Level)
	}
	return actions.StandingOf(b) <= actions.StandingUnknown && matches(in.Filter.Namespace, b.Namespace) && matches(in.Filter.Severity, level) &&
		matches(in.Filter.State, filedState(b))
}

// filedState is the state by which an object is found. An object without one is unknown.
func filedState(b *v1alpha1.Baseline) string {
	return cmp.Or(string(b.Status.State), string(v1alpha1.StateUnknown))
}

// driftRows has a row for each finding that the filter selects, and one for an object whose findings the
// status does not have.
func driftRows(in *Drift, b *v1alpha1.Baseline) [][]Cell {
	head := []Cell{link(pathOfObject(b.Namespace, b.Name), wording.QualifiedName(b)), stateCell(b, in.Now), severityCell(b.Status.Severity)}
	outlook := in.Outlook.cell(b, in.Now)
	var rows [][]Cell
	add := func(path, change, who, known string, since Cell) {
		rows = append(rows, slices.Concat(head, texts(path, change, who, known), []Cell{since, outlook}))
	}
	for i := range b.Status.Findings {
		if f := &b.Status.Findings[i]; matches(in.Filter.Actor, f.Actor.User) {
			add(wording.NamePath(f.Path), wording.DescribeChange(f, false), wording.NameActor(f.Actor.User), knownBy(&f.Actor), age(&f.FirstSeenTime, in.Now))
		}
	}
	more := actions.CountFindings(b) - len(b.Status.Findings)
	switch {
	case in.Filter.Actor != "":
	case more > 0:
		add(fmt.Sprintf("and %d more findings", more), "", "", "", age(b.Status.FirstSeenTime, in.Now))
	case len(rows) == 0:
		add("", "", "", "", age(b.Status.FirstSeenTime, in.Now))
	}
	return rows
}

// knownBy says what names a writer, and how the writer stands to the guards.
func knownBy(a *v1alpha1.Actor) string { return fmt.Sprintf("%s (%s)", a.Source, a.Class) }

func severityCell(s *v1alpha1.Severity) Cell {
	if s == nil {
		return text("")
	}
	return Cell{Text: fmt.Sprintf("%s (%d)", s.Level, s.Score), State: "severity-" + string(s.Level)}
}
