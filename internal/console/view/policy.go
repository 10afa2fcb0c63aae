// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// PoliciesOf lists policies: what they would do, and what holds them back.
func PoliciesOf(policies []v1alpha1.RemediationPolicy, now time.Time) Page {
	policies = slices.Clone(policies)
	slices.SortFunc(policies, func(x, y v1alpha1.RemediationPolicy) int {
		return cmp.Or(cmp.Compare(x.Spec.EnvironmentName, y.Spec.EnvironmentName), cmp.Compare(x.Name, y.Name))
	})
	t := &Table{
		Caption: "Policies by Environment",
		Columns: []string{"Policy", "Environment", "Mode", "Trigger", "Action", "Strategy", "Severity", "Limits", "Acts as", "Selected", "Drifted", "Eligible", "Waiting for", "Ready", "Age"},
		Empty:   "There is no policy.",
	}
	for i := range policies {
		p := &policies[i]
		s, counts := &p.Spec, countsOf(p)
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(PoliciesPath, p.Name), p.Name), text(s.EnvironmentName), text(string(actions.ModeOf(p))), text(string(s.Trigger)), text(string(s.Action)), text(string(s.Strategy)),
			text(string(s.MinimumSeverity)), text(wording.DescribeLimits(&s.Safety)), text(planner.PrincipalOf(s).User), text(counts[0]), text(counts[1]), text(counts[2]),
			text(p.Status.WaitingFor), text(readyWords(p)), age(&p.CreationTimestamp, now),
		})
	}
	return Page{Title: "Policies", Entry: PoliciesPath, Time: now, Sections: []Section{{Title: "Policies", Table: t.cut()}, actionsOf(newPolicyForm())}}
}

// PolicyPathOf is the path of the page of a policy.
func PolicyPathOf(name string) string { return pathOf(PoliciesPath, name) }

// countsOf are the objects that a policy selects, those that drifted, and those to be put back; unknown
// before the status speaks of the spec.
func countsOf(p *v1alpha1.RemediationPolicy) [3]string {
	if !wording.IsLookedAt(p) {
		return [3]string{wording.Unknown, wording.Unknown, wording.Unknown}
	}
	t := p.Status.Targets
	return [3]string{fmt.Sprint(t.Selected), fmt.Sprint(t.Drifted), fmt.Sprint(t.Eligible)}
}

func readyWords(p *v1alpha1.RemediationPolicy) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return wording.Unknown
	}
	return fmt.Sprintf("%s (%s)", ready.Status, ready.Reason)
}

// Policy is what the page of a policy is made from.
type Policy struct {
	Policy *v1alpha1.RemediationPolicy
	// Problems of the policy; with any it makes no plans.
	Problems  []string
	Outlook   Outlook
	Namespace string
	Now       time.Time
}

// PolicyOf shows a policy with its verbs, and each gate between each drift and its repair.
func PolicyOf(in *Policy) Page {
	p := in.Policy
	page := Page{Title: "Policy " + p.Name, Entry: PoliciesPath, Time: in.Now, Filters: []Filter{namespaceFilter(in.Namespace)}}
	if in.Outlook.Unread != "" {
		page.Unread = append(page.Unread, "The gates are not known: "+in.Outlook.Unread)
	}
	page.Sections = []Section{
		{Title: "Policy", Facts: policyFacts(p, in.Now), Lines: in.Problems}, actionsOf(activateForm(p), deactivateForm(p), haltPolicyForm(p), editForm(p)), gatesOf(&in.Outlook),
	}
	for i := range in.Outlook.Explanations {
		if i == maxExplained {
			page.Sections = append(page.Sections, Section{Title: "More", Lines: []string{fmt.Sprintf("%d more drifts are left out: narrow the page down", len(in.Outlook.Explanations)-i)}})
			break
		}
		page.Sections = append(page.Sections, explanationOf(&in.Outlook.Explanations[i], in.Now))
	}
	return page
}

// gatesOf has each gate of each drift.
func gatesOf(o *Outlook) Section {
	gates := Section{Title: "Gates", Table: matrixOf(o.Explanations)}
	if o.Unread != "" {
		gates.Table.Empty = "No gate was asked."
	}
	return gates
}

// maxExplained is how many drifts a page explains gate by gate.
const maxExplained = 50

func policyFacts(p *v1alpha1.RemediationPolicy, now time.Time) []wording.Field {
	s, counts := &p.Spec, countsOf(p)
	return []wording.Field{
		{Label: "Environment", Value: s.EnvironmentName},
		{Label: "Mode", Value: string(actions.ModeOf(p))},
		{Label: "Trigger", Value: string(s.Trigger)},
		{Label: "Action", Value: string(s.Action)},
		{Label: "Strategy", Value: string(s.Strategy)},
		{Label: "Severity", Value: "at least " + string(s.MinimumSeverity)},
		{Label: "Limits", Value: wording.DescribeLimits(&s.Safety)},
		{Label: "Acts as", Value: planner.PrincipalOf(s).User},
		{Label: "Selected", Value: counts[0]},
		{Label: "Drifted", Value: counts[1]},
		{Label: "Eligible", Value: counts[2]},
		{Label: "Waiting for", Value: p.Status.WaitingFor},
		{Label: "Ready", Value: readyWords(p)},
		{Label: "Last plan", Value: p.Status.LastPlanName},
		{Label: "Created", Value: wording.FormatTime(&p.CreationTimestamp, now)},
	}
}

// matrixOf has a row for each drift, and a column for each gate. The names of gates of ledgers say which.
func matrixOf(explanations []explain.Explanation) *Table {
	t := &Table{Caption: "Drifts and gates: ✓ is open, ✗ is closed, and ? is not known", Columns: []string{"Object"}, Empty: "No object that the policy selects has drifted."}
	for i := range explanations {
		for _, g := range explanations[i].Gates {
			if !slices.Contains(t.Columns, g.Name) {
				t.Columns = append(t.Columns, g.Name)
			}
		}
	}
	for i := range explanations {
		e := &explanations[i]
		row := make([]Cell, len(t.Columns))
		row[0] = link("#"+idOf(e), e.Namespace+"/"+actions.NameTarget(&e.Target))
		for _, g := range e.Gates {
			row[slices.Index(t.Columns, g.Name)] = gateCell(g.State)
		}
		t.Rows = append(t.Rows, row)
	}
	return t.cut()
}

func idOf(e *explain.Explanation) string { return "gates-" + e.Namespace + "." + e.Baseline }

func gateCell(state explain.State) Cell {
	return Cell{Text: string(state), Mark: wording.MarkGate(state), State: "gate-" + strings.ToLower(string(state))}
}

func explanationOf(e *explain.Explanation, now time.Time) Section {
	t := &Table{Caption: "Gates of " + e.Namespace + "/" + actions.NameTarget(&e.Target), Columns: []string{"Gate", "State", "Where it stands"}, Empty: "No gate is known."}
	var unbound []string
	for i := range e.Gates {
		g := &e.Gates[i]
		if wording.IsUnbound(g) {
			unbound = append(unbound, g.Name)
			continue
		}
		t.Rows = append(t.Rows, []Cell{text(g.Name), gateCell(g.State), text(wording.DescribeGate(g, now))})
	}
	if len(unbound) > 0 {
		t.Rows = append(t.Rows, []Cell{text(plural.Of(len(unbound), "more gate")), gateCell(explain.Open), text(wording.DescribeUnbound(unbound))})
	}
	s := Section{
		ID: idOf(e), Title: e.Namespace + "/" + actions.NameTarget(&e.Target),
		Lines: []string{fmt.Sprintf("Severity %s (%d)", e.Severity.Level, e.Severity.Score), wording.DescribeVerdict(e, now) + "."}, Table: t,
	}
	if e.Command != "" {
		s.Lines = append(s.Lines, wording.DescribeCommand(e))
	}
	return s
}
