// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Fleet is what the page of the fleet is made from.
type Fleet struct {
	Baselines    []v1alpha1.Baseline
	Environments []*v1alpha1.Environment
	// Namespaces are the labels of namespaces by name.
	Namespaces map[string]labels.Set
	Plans      []v1alpha1.RemediationPlan
	Policies   []v1alpha1.RemediationPolicy
	Ledgers    []v1alpha1.RemediationLedger
	Releases   []v1alpha1.ABRelease
	// Namespace that the values are of; empty for all.
	Namespace string
	Unread    Unread
	Now       time.Time
}

// FleetOf shows all objects by Environment and namespace, what runs, and what is halted.
func FleetOf(in *Fleet) Page {
	sections := append([]Section{overview(in)}, environmentsOf(in)...)
	return Page{
		Title: "Fleet", Entry: FleetPath, Time: in.Now, Unread: in.Unread.sentences(), Filters: []Filter{namespaceFilter(in.Namespace)},
		Sections: append(sections, Section{Title: "Under way", Table: runningOf(in)}, Section{Title: "Halts", Table: haltedOf(in)}),
	}
}

func overview(in *Fleet) Section {
	overdue := 0
	for i := range in.Baselines {
		if isOverdue(&in.Baselines[i], in.Now) {
			overdue++
		}
	}
	lines := []string{wording.Summarize(in.Baselines).String()}
	if overdue > 0 {
		lines = append(lines, fmt.Sprintf("The check of %s is overdue, so the state may be old", plural.Of(overdue, "object")))
	}
	return Section{Title: "Objects", Lines: lines}
}

// environmentsOf draws a grid for each Environment, the most critical first, and one for the namespaces
// of none.
func environmentsOf(in *Fleet) []Section {
	byNamespace := map[string][]*v1alpha1.Baseline{}
	for i := range in.Baselines {
		b := &in.Baselines[i]
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], b)
	}
	assigned := environment.Assign(in.Environments, in.Namespaces)
	grids := map[string][]GridRow{}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		owner := ""
		if e := assigned.Of(namespace); e != nil {
			owner = e.Name
		}
		grids[owner] = append(grids[owner], gridRow(namespace, byNamespace[namespace], in.Now))
	}
	var sections []Section
	for _, e := range mostCriticalFirst(in.Environments) {
		s := Section{Title: fmt.Sprintf("Environment %s (%s)", e.Name, e.Spec.Criticality), Grid: grids[e.Name]}
		if len(s.Grid) == 0 {
			s.Lines = []string{"No guarded object is in a namespace of this Environment."}
		}
		sections = append(sections, s)
	}
	if rest := grids[""]; len(rest) > 0 {
		sections = append(sections, Section{Title: "Without a known Environment", Grid: rest})
	}
	return sections
}

var criticalities = []v1alpha1.Criticality{
	v1alpha1.CriticalityProduction, v1alpha1.CriticalityStaging, v1alpha1.CriticalityDevelopment, v1alpha1.CriticalityOther,
}

func mostCriticalFirst(environments []*v1alpha1.Environment) []*v1alpha1.Environment {
	return slices.SortedFunc(slices.Values(environments), func(x, y *v1alpha1.Environment) int {
		return cmp.Or(cmp.Compare(slices.Index(criticalities, x.Spec.Criticality), slices.Index(criticalities, y.Spec.Criticality)), strings.Compare(x.Name, y.Name))
	})
}

// maxCells is how many objects of a namespace have a cell; the worst come first.
const maxCells = 300

func gridRow(namespace string, baselines []*v1alpha1.Baseline, now time.Time) GridRow {
	row, summary := GridRow{Name: namespace, Path: DriftPath + "?" + url.Values{"namespace": {namespace}}.Encode()}, wording.Summary{}
	slices.SortFunc(baselines, wording.CompareWorstFirst)
	for i, b := range baselines {
		summary[actions.StandingOf(b)]++
		if i < maxCells {
			row.Cells = append(row.Cells, gridCell(b, now))
		}
	}
	if more := len(baselines) - maxCells; more > 0 {
		row.More = fmt.Sprintf("and %d more, each as good or better", more)
	}
	row.Summary = summary.String()
	return row
}

func gridCell(b *v1alpha1.Baseline, now time.Time) GridCell {
	state := stateCell(b, now)
	label := wording.ObjectOf(b) + ": " + wording.DescribeDrift(b, now)
	if isOverdue(b, now) {
		label += ", " + overdueWords(b, now)
	}
	return GridCell{Path: pathOfObject(b.Namespace, b.Name), Mark: state.Mark, State: state.State, Label: label}
}

// runningOf lists plans and runs of releases that have not ended.
func runningOf(in *Fleet) *Table {
	t := &Table{Caption: "Plans and releases under way", Columns: []string{"Name", "Kind", "State", "Waiting for", "Age"}, Empty: in.Unread.empty("No plan and no release is under way.", "RemediationPlan", "ABRelease")}
	plans := keep(in.Plans, func(p *v1alpha1.RemediationPlan) bool { return !wording.HasEnded(p) })
	wording.SortPlans(plans)
	for i := range plans {
		p := &plans[i]
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(PlansPath, p.Namespace, p.Name), wording.PlanName(p)), text("RemediationPlan"), text(wording.DescribePhase(p)),
			text(wording.DescribeWaiting(p, in.Now)), age(&p.CreationTimestamp, in.Now),
		})
	}
	for i := range in.Releases {
		r := &in.Releases[i]
		screen := progress.ScreenOf(r, in.Now)
		if screen.Run == nil || screen.Run.IsOver() {
			continue
		}
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(ReleasesPath, r.Namespace, r.Name), r.Namespace+"/"+r.Name), text("ABRelease"), text(fmt.Sprintf("run %d, %s", screen.Run.Number, screen.Run.State)),
			text(waitWords(&screen)), {Text: progress.FormatClock(screen.Run.Age.Duration)},
		})
	}
	return t.cut()
}

func waitWords(s *progress.Screen) string {
	if s.Wait == nil {
		return ""
	}
	return progress.DescribeWait(s.Wait)
}

// haltedOf lists the policies and ledgers that a person has halted.
func haltedOf(in *Fleet) *Table {
	t := &Table{Caption: "Halts of remediation", Columns: []string{"Scope", "Kind", "By", "Reason"}, Empty: in.Unread.empty("Remediation is halted nowhere.", "RemediationLedger", "RemediationPolicy")}
	for i := range in.Ledgers {
		l := &in.Ledgers[i]
		if l.Spec.Halt != nil {
			t.Rows = append(t.Rows, texts(scopeWords(l), "RemediationLedger", wording.NameActor(l.Spec.Halt.RequestedBy), l.Spec.Halt.Reason))
		}
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		if actions.ModeOf(p) == v1alpha1.PolicyModeHalted {
			t.Rows = append(t.Rows, []Cell{link(pathOf(PoliciesPath, p.Name), p.Name), text("RemediationPolicy"), text(""), text(p.Status.WaitingFor)})
		}
	}
	return t.cut()
}

func scopeWords(l *v1alpha1.RemediationLedger) string {
	if l.Spec.Scope == actions.ScopeCluster {
		return "all Environments"
	}
	return "Environment " + l.Name
}
