// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
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
		Sections: append(sections, Section{Title: "Under way", Table: runningOf(in)}, Section{Title: "Halts", Table: haltedOf(in), Links: ledgerLinks(in)}),
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
	return Section{Title: "Objects", Lines: lines, Links: stateLinks(in)}
}

// stateLinks lead to the objects of each state that needs a look.
func stateLinks(in *Fleet) []Cell {
	counts := map[string]int{}
	for i := range in.Baselines {
		counts[filedState(&in.Baselines[i])]++
	}
	var links []Cell
	for _, state := range states {
		if counts[state] == 0 {
			continue
		}
		query := url.Values{"state": {state}}
		if in.Namespace != "" {
			query.Set("namespace", in.Namespace)
		}
		links = append(links, link(DriftPath+"?"+query.Encode(), fmt.Sprintf("%s: %d", state, counts[state])))
	}
	return links
}

// environmentsOf draws a grid for each Environment, the most critical first, and one for the namespaces
// of none.
func environmentsOf(in *Fleet) []Section {
	assigned := environment.Assign(in.Environments, in.Namespaces)
	grids, more := map[string][]GridRow{}, map[string]int{}
	for i, row := range gridRows(in) {
		owner := ""
		if e := assigned.Of(row.Name); e != nil {
			owner = e.Name
		}
		if i < maxGridRows {
			grids[owner] = append(grids[owner], row)
		} else {
			more[owner]++
		}
	}
	var sections []Section
	for _, e := range mostCriticalFirst(in.Environments) {
		s := gridOf(fmt.Sprintf("Environment %s (%s)", e.Name, e.Spec.Criticality), grids[e.Name], more[e.Name])
		if len(s.Grid) == 0 && len(s.Lines) == 0 {
			s.Lines = []string{"No guarded object is in a namespace of this Environment."}
		}
		sections = append(sections, s)
	}
	if len(grids[""])+more[""] > 0 {
		sections = append(sections, gridOf("Without a known Environment", grids[""], more[""]))
	}
	return sections
}

// gridOf has rows in the order of their names, and says how many are left out.
func gridOf(title string, rows []GridRow, more int) Section {
	slices.SortFunc(rows, func(x, y GridRow) int { return strings.Compare(x.Name, y.Name) })
	s := Section{Title: title, Grid: rows}
	if more > 0 {
		s.Lines = []string{fmt.Sprintf("%s left out, each as good as those that are shown or better: narrow the page down", plural.Of(more, "namespace"))}
	}
	return s
}

var criticalities = []v1alpha1.Criticality{
	v1alpha1.CriticalityProduction, v1alpha1.CriticalityStaging, v1alpha1.CriticalityDevelopment, v1alpha1.CriticalityOther,
}

func mostCriticalFirst(environments []*v1alpha1.Environment) []*v1alpha1.Environment {
	return slices.SortedFunc(slices.Values(environments), func(x, y *v1alpha1.Environment) int {
		return cmp.Or(cmp.Compare(slices.Index(criticalities, x.Spec.Criticality), slices.Index(criticalities, y.Spec.Criticality)), strings.Compare(x.Name, y.Name))
	})
}

// The page stays small however large the fleet is: so many objects have a cell, so many namespaces a row, and the
// worst come first.
const (
	maxCells    = 400
	maxGridRows = 300
)

// gridRows has a row for each namespace, the namespaces with the worst objects first.
func gridRows(in *Fleet) []GridRow {
	objects := make([]*v1alpha1.Baseline, 0, len(in.Baselines))
	for i := range in.Baselines {
		objects = append(objects, &in.Baselines[i])
	}
	slices.SortFunc(objects, wording.CompareWorstFirst)
	var rows []GridRow
	var summaries []wording.Summary
	at := map[string]int{}
	for i, b := range objects {
		n, seen := at[b.Namespace]
		if !seen {
			n, at[b.Namespace] = len(rows), len(rows)
			rows = append(rows, GridRow{Name: b.Namespace, Path: pathOfNamespace(DriftPath, b.Namespace)})
			summaries = append(summaries, wording.Summary{})
		}
		summaries[n][actions.StandingOf(b)]++
		if i < maxCells && n < maxGridRows {
			rows[n].Cells = append(rows[n].Cells, gridCell(b, in.Now))
		}
	}
	for n := range rows {
		row := &rows[n]
		row.Summary = summaries[n].String()
		if more := summaries[n].Total() - len(row.Cells); more > 0 {
			row.More = link(pathOfNamespace(FleetPath, row.Name), fmt.Sprintf("%d more, each as good or better", more))
		}
	}
	return rows
}

// pathOfNamespace leads to a page that is narrowed down to a namespace.
func pathOfNamespace(page, namespace string) string {
	return page + "?" + url.Values{"namespace": {namespace}}.Encode()
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
	return t.cutTo(maxUnderWay)
}

// maxUnderWay is how many plans, runs or halts a table of the page has.
const maxUnderWay = 100

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
	return t.cutTo(maxUnderWay)
}

func scopeWords(l *v1alpha1.RemediationLedger) string {
	if l.Spec.Scope == actions.ScopeCluster {
		return "all Environments"
	}
	return "Environment " + l.Name
}
