// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Plans is what the list of plans is made from.
type Plans struct {
	Plans  []v1alpha1.RemediationPlan
	Filter PlanFilter
	Now    time.Time
}

// PlanFilter narrows plans down; an empty field lets all through.
type PlanFilter struct{ Namespace, Policy, Phase string }

// PlansOf lists plans, those that have not ended first.
func PlansOf(in *Plans) Page {
	plans := keep(in.Plans, func(p *v1alpha1.RemediationPlan) bool {
		return matches(in.Filter.Namespace, p.Namespace) && matches(in.Filter.Policy, p.Spec.Plan.Policy.Name) && matches(in.Filter.Phase, string(wording.PhaseOf(p)))
	})
	wording.SortPlans(plans)
	t := &Table{
		Caption: "Plans, those that have not ended first",
		Columns: []string{"Plan", "Policy", "Environment", "Phase", "Targets", "Succeeded", "Failed", "Skipped", "Effect", "Waiting for", "Age"}, Empty: "There is no plan.",
	}
	for i := range plans {
		p := &plans[i]
		counts := p.Status.Counts
		t.Rows = append(t.Rows, []Cell{
			link(pathOf(PlansPath, p.Namespace, p.Name), wording.PlanName(p)), link(pathOf(PoliciesPath, p.Spec.Plan.Policy.Name), p.Spec.Plan.Policy.Name), text(p.Spec.Plan.EnvironmentName),
			text(wording.DescribePhase(p)), text(fmt.Sprint(len(p.Spec.Plan.Targets))), text(fmt.Sprint(counts.Succeeded)), text(fmt.Sprint(counts.Failed)), text(fmt.Sprint(counts.Skipped)),
			text(string(p.Status.Effect)), text(wording.DescribeWaiting(p, in.Now)), age(&p.CreationTimestamp, in.Now),
		})
	}
	return Page{
		Title: "Plans", Entry: PlansPath, Time: in.Now,
		Filters: []Filter{
			namespaceFilter(in.Filter.Namespace), {Name: "policy", Label: "Policy", Value: in.Filter.Policy},
			{Name: "phase", Label: "Phase", Value: in.Filter.Phase, Options: planPhases()},
		},
		Sections: []Section{{Title: "Plans", Table: t.cut()}},
	}
}

func planPhases() []string {
	phases := make([]string, 0, len(wording.PlanPhases))
	for _, phase := range wording.PlanPhases {
		phases = append(phases, string(phase))
	}
	return phases
}

// PlanOf shows the steps of a plan, how far the plan is, and why, with its verbs.
func PlanOf(p *v1alpha1.RemediationPlan, now time.Time) Page {
	page := Page{Title: "Plan " + wording.PlanName(p), Entry: PlansPath, Time: now, Sections: []Section{
		{
			Title: "Plan", Facts: wording.DescribePlan(p, false, now),
			Links: []Cell{link(pathOf(EvidencePath+"/plans", p.Namespace, p.Name), "Signed records of the plan")},
		},
		actionsOf(
			planForm(p, "execute", "Execute the plan", v1alpha1.PlanExecute), planForm(p, "pause", "Pause the plan", v1alpha1.PlanPause),
			planForm(p, "resume", "Resume the plan", actions.PlanResume), planForm(p, "cancel", "Cancel the plan", v1alpha1.PlanCancel)),
	}}
	batches := p.Spec.Plan.Batches
	for i := range batches {
		last := i == len(batches)-1
		s := Section{
			Title: fmt.Sprintf("Batch %d", batches[i].Order), Lines: []string{wording.DescribeBatch(&batches[i], last)},
			Table: &Table{Caption: fmt.Sprintf("Steps of batch %d", batches[i].Order), Columns: []string{"Object", "Step", "Action", "State", "Details"}, Empty: "The batch has no step."},
		}
		for _, index := range batches[i].Steps {
			if int(index) < len(p.Spec.Plan.Targets) {
				s.Table.Rows = append(s.Table.Rows, stepRow(p, int(index), now))
			}
		}
		page.Sections = append(page.Sections, s)
	}
	if s := leftOutOf(&p.Spec.Plan); s.Table != nil {
		page.Sections = append(page.Sections, s)
	}
	page.Sections = append(page.Sections, logOf(p))
	return page
}

// planForm asks for a verb of a plan.
func planForm(p *v1alpha1.RemediationPlan, id, button string, verb v1alpha1.PlanVerb) Form {
	f := Form{
		ID: id, Action: pathOf(PlansPath, p.Namespace, p.Name, id), Button: button, Lines: wording.PlanVerbs[verb].Paragraphs(), Inputs: []Input{reasonInput()},
		Wants: []Want{{"patch", "remediationplans", p.Namespace, p.Name}},
	}
	if standing, already := actions.FindPlanStanding(verb, p); already {
		f.Barred = notNow("the plan " + wording.DescribePlanStanding(standing))
	} else if refused := actions.RefusePlanVerb(verb, p); refused != nil {
		f.Barred = notNow(refused.Error())
	}
	if verb == actions.PlanResume && actions.NeedsExecute(p) {
		f.Lines = append(f.Lines, "This plan begins by hand alone: execute it to go on.")
	}
	return f
}

func stepRow(p *v1alpha1.RemediationPlan, index int, now time.Time) []Cell {
	target, step := &p.Spec.Plan.Targets[index], wording.StepOf(p, index)
	return []Cell{
		link(pathOfObject(p.Namespace, target.BaselineName), actions.NameTarget(&target.BaselineTarget)), text(fmt.Sprint(index)), text(string(target.Action)),
		text(wording.DescribeStepState(&step)), {Lines: wording.DescribeStep(target, &step, false, now)},
	}
}

func leftOutOf(plan *v1alpha1.PlannedRemediation) Section {
	if len(plan.LeftOut) == 0 {
		return Section{}
	}
	t := &Table{Caption: "Drift that the plan leaves out", Columns: []string{"Baseline", "Reason"}}
	for _, left := range plan.LeftOut {
		t.Rows = append(t.Rows, texts(left.BaselineName, wording.AppendReason(left.Reason, left.Message)))
	}
	if more := int(plan.LeftOutTotal) - len(plan.LeftOut); more > 0 {
		t.More = fmt.Sprintf("and %d more", more)
	}
	return Section{Title: "Left out", Table: t}
}

func logOf(p *v1alpha1.RemediationPlan) Section {
	s := Section{Title: "Log"}
	for i := range p.Status.Steps {
		for _, line := range p.Status.Steps[i].Logs {
			s.Log = append(s.Log, fmt.Sprintf("step %d  %s", p.Status.Steps[i].Index, line))
		}
	}
	if len(s.Log) == 0 {
		s.Lines = []string{"No step has written a line."}
	}
	return s
}
