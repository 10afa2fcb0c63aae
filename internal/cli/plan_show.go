// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) planShowCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a plan does, how far it is, and why",
		Long: `Show a plan: whose it is and with whose right it acts, what it waits for, each
step with its target, state, reason, duration, evidence and what happened to it,
its batches, and the drift that it leaves out, with the reason for each. Durations
of targets are from the grant of the step to its end.

-o wide shows hashes in full. -o json and -o yaml print the RemediationPlan.`,
		Example: examples(
			"# How far is it, and what happened", "%s plan show production-3f9c2a",
			"# As the cluster has it", "%s plan show production-3f9c2a -o yaml"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.planShow(cmd, args, output) },
		ValidArgsFunction: a.completePlan(),
	}
	addOutputFlag(cmd, &output, "json", "yaml", "wide")
	return cmd
}

func (a *app) planShow(cmd *cobra.Command, args []string, output string) error {
	if err := checkOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	name, err := oneArgument(cmd, args, "plan")
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	plan, err := c.plan(cmd.Context(), name)
	if err != nil {
		return err
	}
	if output == "json" || output == "yaml" {
		plan.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RemediationPlan"))
		plan.ManagedFields = nil
		return a.printStructured(output, plan)
	}
	return a.print(a.describePlan(plan, output == "wide"))
}

// describePlan is the plan for people.
func (a *app) describePlan(p *v1alpha1.RemediationPlan, wide bool) string {
	d := &description{}
	a.describeHead(d, p, wide)
	a.describeTimes(d, p)
	d.section("Steps")
	for i := range p.Spec.Plan.Targets {
		a.describeStep(d, p, i, wide)
	}
	d.section("Batches")
	for i := range p.Spec.Plan.Batches {
		describeBatch(d, &p.Spec.Plan.Batches[i], i == len(p.Spec.Plan.Batches)-1)
	}
	describeLeftOut(d, &p.Spec.Plan)
	return d.String()
}

func (a *app) describeHead(d *description, p *v1alpha1.RemediationPlan, wide bool) {
	plan, counts := &p.Spec.Plan, p.Status.Counts
	d.field("Plan", planName(p))
	d.field("Phase", phaseWords(p))
	d.field("Waiting for", a.planWaitsFor(p))
	d.field("Ended by", p.Status.EndedBy)
	d.field("Because", p.Status.EndedReason)
	d.field("Steps", fmt.Sprintf("%d: %d succeeded, %d failed, %d skipped", len(plan.Targets), counts.Succeeded, counts.Failed, counts.Skipped))
	d.field("Policy", fmt.Sprintf("%s (generation %d, %s)", plan.Policy.Name, plan.Policy.Generation, hashWords(plan.Policy.Digest, wide)))
	d.field("Environment", plan.EnvironmentName)
	d.field("Trigger", fmt.Sprintf("%s, strategy %s", plan.Trigger, plan.Strategy))
	d.field("Initiated by", initiatorWords(plan))
	if control := p.Spec.Control; control.Verb != "" {
		d.field("Asked", withReason(fmt.Sprintf("%s, by %s", control.Verb, control.RequestedBy), control.Reason))
	}
	if p.Status.Holder != "" {
		d.field("Executor", fmt.Sprintf("%s (epoch %d)", p.Status.Holder, p.Status.Epoch))
	}
	d.field("Correlation", plan.CorrelationID)
	d.field("Drift report", plan.DriftReportID)
}

// initiatorWords names who asked for a plan, and whose rights it needs.
func initiatorWords(plan *v1alpha1.PlannedRemediation) string {
	words := fmt.Sprintf("%s, acting with the rights of %s", plan.InitiatedBy, plan.Requester)
	if plan.Request != nil {
		words += " and of the user as whom the policy acts, by request " + plan.Request.Name
	}
	return words
}

func hashWords(hash string, wide bool) string {
	if wide {
		return hash
	}
	return shortHash(hash)
}

func (a *app) describeTimes(d *description, p *v1alpha1.RemediationPlan) {
	d.field("Created", a.timeAndAge(&p.CreationTimestamp))
	d.field("Scheduled for", a.timeAndAge(p.Spec.Plan.ScheduledTime))
	d.field("Started", a.timeAndAge(p.Status.StartTime))
	if at := p.Status.CompletionTime; at != nil {
		took := ""
		if p.Status.StartTime != nil {
			took = fmt.Sprintf(", took %s", at.Sub(p.Status.StartTime.Time).Round(time.Second))
		}
		d.field("Completed", a.timeAndAge(at)+took)
	} else {
		d.field("Deadline", a.timeAndAge(&p.Spec.Plan.DeadlineTime))
	}
	d.field("Targets took", durationsWords(planDurations(p)))
}

// timeAndAge is a time with how far from now it is; nothing for no time.
func (a *app) timeAndAge(at *metav1.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(a.now()):
		return fmt.Sprintf("%s (in %s)", timestamp(*at), humanDuration(at.Sub(a.now())))
	}
	return fmt.Sprintf("%s (%s)", timestamp(*at), a.ago(*at))
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

func (a *app) describeStep(d *description, p *v1alpha1.RemediationPlan, index int, wide bool) {
	target, step := &p.Spec.Plan.Targets[index], stepOf(p, index)
	state := string(step.State)
	if step.Reason != "" {
		state += " (" + string(step.Reason) + ")"
	}
	d.line(1, "%d  %s  %s  %s%s", index, targetObject(&target.BaselineTarget), target.Action, state, tookWords(stepDuration(&step)))
	if step.Message != "" {
		d.line(3, "%s", step.Message)
	}
	d.line(3, "severity %s (%d), %s, since %s, by %s", target.Severity.Level, target.Severity.Score, target.DriftType, a.age(target.FirstSeenTime), actorList(target.Actors))
	for _, path := range target.Paths {
		d.line(3, "%s", pathName(path))
	}
	if len(target.Paths) == 0 {
		d.line(3, "(the whole object)")
	}
	d.line(3, "%s → %s, from %s", hashWords(target.DriftedHash, wide), hashWords(target.DesiredHash, wide), target.Revision)
	if r := step.Result; r != nil {
		d.line(3, "wrote version %s, %s (%s)", r.ResourceVersion, hashWords(r.Hash, wide), r.Origin)
	}
	if e := step.Evidence; e != nil {
		d.line(3, "evidence #%d %s", e.Sequence, hashWords(e.Digest, wide))
	}
	for _, line := range step.Logs {
		d.line(3, "| %s", line)
	}
}

// targetObject names an object as kubectl does: deployment.apps/web.
func targetObject(t *v1alpha1.BaselineTarget) string {
	return objectName(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind(), t.Name)
}

func actorList(actors []string) string {
	if len(actors) == 0 {
		return actorName("")
	}
	return strings.Join(actors, ", ")
}

func describeBatch(d *description, b *v1alpha1.PlanBatch, last bool) {
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
	d.line(1, "%s", text)
}

func describeLeftOut(d *description, plan *v1alpha1.PlannedRemediation) {
	if len(plan.LeftOut) == 0 {
		return
	}
	d.section("Left out")
	for _, left := range plan.LeftOut {
		d.line(1, "%s  %s", left.BaselineName, withReason(left.Reason, left.Message))
	}
	if more := int(plan.LeftOutTotal) - len(plan.LeftOut); more > 0 {
		d.line(1, "... and %d more", more)
	}
}
