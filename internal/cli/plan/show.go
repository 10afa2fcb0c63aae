// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

func (a *app) showCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the steps of a plan, its progress, and its reasons",
		Long: `Show a plan: its policy, the user with its permissions, the reason of its wait, and
its batches. Each step has its target, state, reason, duration, evidence and log.
Drift that the plan leaves out has a reason each. Durations of targets are from the
grant of the step to its end.

-o wide shows hashes in full. -o json and -o yaml print the RemediationPlan.`,
		Example: invocation.Examples(
			"# Show the progress and the log of a plan", "%s plan show production-3f9c2a",
			"# As the cluster has it", "%s plan show production-3f9c2a -o yaml"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd, args, output) },
		ValidArgsFunction: remediation.CompletePlan(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml", "wide")
	return cmd
}

func (a *app) show(cmd *cobra.Command, args []string, output string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	name, err := invocation.OneArgument(cmd, args, "plan")
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	plan, err := remediation.GetPlan(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	if output == "json" || output == "yaml" {
		plan.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RemediationPlan"))
		plan.ManagedFields = nil
		return a.PrintStructured(output, plan)
	}
	return a.Print(a.describePlan(plan, output == "wide"))
}

// describePlan is the plan for people.
func (a *app) describePlan(p *v1alpha1.RemediationPlan, wide bool) string {
	d := &invocation.Description{}
	a.describeHead(d, p, wide)
	a.describeTimes(d, p)
	d.Section("Steps")
	for i := range p.Spec.Plan.Targets {
		a.describeStep(d, p, i, wide)
	}
	d.Section("Batches")
	for i := range p.Spec.Plan.Batches {
		describeBatch(d, &p.Spec.Plan.Batches[i], i == len(p.Spec.Plan.Batches)-1)
	}
	describeLeftOut(d, &p.Spec.Plan)
	return d.String()
}

func (a *app) describeHead(d *invocation.Description, p *v1alpha1.RemediationPlan, wide bool) {
	plan, counts := &p.Spec.Plan, p.Status.Counts
	d.Field("Plan", remediation.PlanName(p))
	d.Field("Phase", remediation.DescribePhase(p))
	d.Field("Waiting for", a.waitsFor(p))
	d.Field("Ended by", p.Status.EndedBy)
	d.Field("Because", p.Status.EndedReason)
	d.Field("Steps", fmt.Sprintf("%d: %d succeeded, %d failed, %d skipped", len(plan.Targets), counts.Succeeded, counts.Failed, counts.Skipped))
	d.Field("Policy", fmt.Sprintf("%s (generation %d, %s)", plan.Policy.Name, plan.Policy.Generation, invocation.FormatHash(plan.Policy.Digest, wide)))
	d.Field("Environment", plan.EnvironmentName)
	d.Field("Trigger", fmt.Sprintf("%s, strategy %s", plan.Trigger, plan.Strategy))
	d.Field("Initiated by", initiatorWords(plan))
	if control := p.Spec.Control; control.Verb != "" {
		d.Field("Asked", invocation.AppendReason(fmt.Sprintf("%s, by %s", control.Verb, control.RequestedBy), control.Reason))
	}
	if p.Status.Holder != "" {
		d.Field("Executor", fmt.Sprintf("%s (epoch %d)", p.Status.Holder, p.Status.Epoch))
	}
	d.Field("Correlation", plan.CorrelationID)
	d.Field("Drift report", plan.DriftReportID)
}

// initiatorWords names who asked for a plan, and whose rights it needs.
func initiatorWords(plan *v1alpha1.PlannedRemediation) string {
	words := fmt.Sprintf("%s, acting with the permissions of %s", plan.InitiatedBy, plan.Requester)
	if plan.Request != nil {
		words += " and of the user that the policy acts as, by request " + plan.Request.Name
	}
	return words
}

func (a *app) describeTimes(d *invocation.Description, p *v1alpha1.RemediationPlan) {
	d.Field("Created", a.FormatTime(&p.CreationTimestamp))
	d.Field("Scheduled for", a.FormatTime(p.Spec.Plan.ScheduledTime))
	d.Field("Started", a.FormatTime(p.Status.StartTime))
	if at := p.Status.CompletionTime; at != nil {
		took := ""
		if p.Status.StartTime != nil {
			took = fmt.Sprintf(", took %s", at.Sub(p.Status.StartTime.Time).Round(time.Second))
		}
		d.Field("Completed", a.FormatTime(at)+took)
	} else {
		d.Field("Deadline", a.FormatTime(&p.Spec.Plan.DeadlineTime))
	}
	d.Field("Targets took", remediation.FormatDurations(durationsOf(p)))
}

// stepOf is the status of a step; before an executor wrote any it is planned.
func stepOf(p *v1alpha1.RemediationPlan, index int) v1alpha1.PlanStep {
	for i := range p.Status.Steps {
		if int(p.Status.Steps[i].Index) == index {
			return p.Status.Steps[i]
		}
	}
	return v1alpha1.PlanStep{Index: int32(index), State: v1alpha1.StepPlanned} //nolint:gosec // at most ten
}

func (a *app) describeStep(d *invocation.Description, p *v1alpha1.RemediationPlan, index int, wide bool) {
	target, step := &p.Spec.Plan.Targets[index], stepOf(p, index)
	state := string(step.State)
	if step.Reason != "" {
		state += " (" + string(step.Reason) + ")"
	}
	d.Line(1, "%d  %s  %s  %s%s", index, actions.NameTarget(&target.BaselineTarget), target.Action, state, remediation.FormatTook(stepDuration(&step)))
	if step.Message != "" {
		d.Line(3, "%s", step.Message)
	}
	d.Line(3, "severity %s (%d), %s, since %s, by %s", target.Severity.Level, target.Severity.Score, target.DriftType, a.FormatAge(target.FirstSeenTime), invocation.ListActors(target.Actors))
	for _, path := range target.Paths {
		d.Line(3, "%s", invocation.NamePath(path))
	}
	if len(target.Paths) == 0 {
		d.Line(3, "(the whole object)")
	}
	d.Line(3, "%s → %s, from %s", invocation.FormatHash(target.DriftedHash, wide), invocation.FormatHash(target.DesiredHash, wide), target.Revision)
	if r := step.Result; r != nil {
		d.Line(3, "wrote version %s, %s (%s)", r.ResourceVersion, invocation.FormatHash(r.Hash, wide), r.Origin)
	}
	if e := step.Effect; e != nil {
		score := ""
		if e.Score != nil {
			score = fmt.Sprintf(", %s of %s", actions.FormatScore(*e.Score), actions.FormatScore(effect.Best))
		}
		d.Line(3, "effect %s%s (assess show %s)", e.Verdict, score, e.AssessmentName)
	}
	if s := step.Standby; s != nil {
		d.Line(3, "standby %s, of Service %s: %s, since %s", s.Name, s.ServiceName, s.Phase, a.FormatAge(s.PhaseTime))
	}
	if e := step.Evidence; e != nil {
		d.Line(3, "evidence #%d %s", e.Sequence, invocation.FormatHash(e.Digest, wide))
	}
	for _, line := range step.Logs {
		d.Line(3, "| %s", line)
	}
}

func describeBatch(d *invocation.Description, b *v1alpha1.PlanBatch, last bool) {
	steps := make([]string, 0, len(b.Steps))
	for _, step := range b.Steps {
		steps = append(steps, fmt.Sprint(step))
	}
	noun := "steps"
	if len(steps) == 1 {
		noun = "step"
	}
	text := fmt.Sprintf("%d  %s %s", b.Order, noun, strings.Join(steps, ", "))
	if !last {
		text += "; the next one only when all of it is healthy"
	}
	if b.DelayAfter != nil && b.DelayAfter.Duration > 0 {
		text += fmt.Sprintf(", and %s later", b.DelayAfter.Duration)
	}
	d.Line(1, "%s", text)
}

func describeLeftOut(d *invocation.Description, plan *v1alpha1.PlannedRemediation) {
	if len(plan.LeftOut) == 0 {
		return
	}
	d.Section("Left out")
	for _, left := range plan.LeftOut {
		d.Line(1, "%s  %s", left.BaselineName, invocation.AppendReason(left.Reason, left.Message))
	}
	if more := int(plan.LeftOutTotal) - len(plan.LeftOut); more > 0 {
		d.Line(1, "... and %d more", more)
	}
}
