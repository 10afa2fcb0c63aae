// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// Assessments is what the list of assessments is made from.
type Assessments struct {
	Assessments        []v1alpha1.EffectivenessAssessment
	Namespace, Verdict string
	Now                time.Time
}

var verdicts = []string{
	string(v1alpha1.VerdictEffective), string(v1alpha1.VerdictIneffective), string(v1alpha1.VerdictInconclusive), string(v1alpha1.VerdictInvalidated),
}

// AssessmentsOf lists assessments, those under way first.
func AssessmentsOf(in *Assessments) Page {
	all := keep(in.Assessments, func(x *v1alpha1.EffectivenessAssessment) bool { return matches(in.Verdict, string(x.Status.Verdict)) })
	actions.SortAssessments(all)
	t := &Table{
		Caption: "Assessments, those under way first",
		Columns: []string{"Assessment", "Object", "Action", "By", "End", "In effect", "Policy", "Age"}, Empty: "There is no assessment.",
	}
	for i := range all {
		x := &all[i]
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(AssessmentsPath, x.Namespace, x.Name), x.Namespace+"/"+x.Name), objectCell(x), text(string(x.Spec.Action)), text(wording.NameSubject(x)),
			text(wording.DescribeEnd(x)), text(wording.DescribeIntegrity(x)), text(x.Spec.Policy.Name), age(&x.CreationTimestamp, in.Now),
		})
	}
	return Page{
		Title: "Assessments", Entry: AssessmentsPath, Time: in.Now,
		Filters:  []Filter{namespaceFilter(in.Namespace), {Name: "verdict", Label: "Verdict", Value: in.Verdict, Options: slices.Clone(verdicts)}},
		Sections: []Section{{Title: "Assessments", Table: t.cut()}},
	}
}

func objectCell(x *v1alpha1.EffectivenessAssessment) Cell {
	return link(pathOfObject(x.Namespace, x.Spec.Target.BaselineName), actions.NameTarget(&x.Spec.Target.BaselineTarget))
}

// AssessmentOf shows whether a write helped, what each component says, and what the verdict waits for.
func AssessmentOf(x *v1alpha1.EffectivenessAssessment, now time.Time) Page {
	components := &Table{Caption: "Components", Columns: []string{"Component", "Score, weight and words"}}
	for _, name := range []effect.Name{effect.Health, effect.Alerts, effect.Metrics} {
		components.Rows = append(components.Rows, texts(string(name), strings.TrimSpace(wording.DescribeComponent(x, name))))
	}
	gates := &Table{Caption: "Waits of the verdict", Columns: []string{"Gate", "State", "Value", "Until"}, Empty: "The verdict has no gate left."}
	for _, g := range actions.ListEffectGates(x, now) {
		state, until := Cell{Text: "passed", Mark: "✓", State: "gate-ok"}, Cell{}
		if !g.Passed {
			state = Cell{Text: "waits", Mark: "…", State: "gate-unknown"}
		}
		if g.Until != nil {
			at := metav1.NewTime(*g.Until)
			until = Cell{Text: wording.FormatUntil(at, now), UTC: wording.FormatTimestamp(at)}
		}
		gates.Rows = append(gates.Rows, []Cell{text(g.Name), state, text(g.Value), until})
	}
	return Page{
		Title: "Assessment " + x.Namespace + "/" + x.Name, Entry: AssessmentsPath, Time: now,
		Sections: []Section{
			{Title: "Verdict", Lines: []string{wording.Conclude(x)}, Facts: assessmentFacts(x, now)},
			{Title: "Components", Table: components, Lines: x.Status.SideEffects},
			{Title: "Gates", Table: gates},
		},
	}
}

func assessmentFacts(x *v1alpha1.EffectivenessAssessment, now time.Time) []wording.Field {
	return []wording.Field{
		{Label: "Object", Value: actions.NameTarget(&x.Spec.Target.BaselineTarget)},
		{Label: "Action", Value: string(x.Spec.Action)},
		{Label: "By", Value: wording.NameSubject(x)},
		{Label: "Policy", Value: x.Spec.Policy.Name},
		{Label: "End", Value: wording.DescribeEnd(x)},
		{Label: "Written", Value: wording.FormatTime(x.Spec.WrittenTime, now)},
		{Label: "Measured until", Value: wording.FormatTime(x.Status.CompletionTime, now)},
		{Label: "Hash", Value: wording.DescribeIntegrity(x)},
	}
}
