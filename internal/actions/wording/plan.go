// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// PlanPhases are the phases of a plan, in the order in which they are listed: phases before the end
// come first.
var PlanPhases = []v1alpha1.PlanPhase{
	v1alpha1.PlanRunning, v1alpha1.PlanSealing, v1alpha1.PlanPaused, v1alpha1.PlanDeferred, v1alpha1.PlanScheduled, v1alpha1.PlanCreated,
	v1alpha1.PlanFailed, v1alpha1.PlanSkipped, v1alpha1.PlanPartialSuccess, v1alpha1.PlanSucceeded, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded,
}

// PlanName is namespace/name, as the results of all verbs begin.
func PlanName(p *v1alpha1.RemediationPlan) string { return p.Namespace + "/" + p.Name }

// PhaseOf returns the phase of a plan; one that no executor has looked at yet is created.
func PhaseOf(p *v1alpha1.RemediationPlan) v1alpha1.PlanPhase {
	return cmp.Or(p.Status.Phase, v1alpha1.PlanCreated)
}

// DescribePhase gives the phase of a plan; for a plan that is being sealed, also its last phase.
func DescribePhase(p *v1alpha1.RemediationPlan) string {
	if p.Status.Phase == v1alpha1.PlanSealing && p.Status.EndingAs != "" {
		return fmt.Sprintf("%s (%s)", p.Status.Phase, p.Status.EndingAs)
	}
	return string(PhaseOf(p))
}

// HasEnded says whether no further step of a plan follows.
func HasEnded(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) }

// SortPlans puts plans that have not ended first, and the newest first among these.
func SortPlans(plans []v1alpha1.RemediationPlan) {
	ended := func(p *v1alpha1.RemediationPlan) int {
		if HasEnded(p) {
			return 1
		}
		return 0
	}
	slices.SortFunc(plans, func(x, y v1alpha1.RemediationPlan) int {
		return cmp.Or(
			cmp.Compare(ended(&x), ended(&y)), y.CreationTimestamp.Compare(x.CreationTimestamp.Time),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// DescribeWaiting names the event for which a plan waits; empty for a plan that runs or has ended.
func DescribeWaiting(p *v1alpha1.RemediationPlan, now time.Time) string {
	control := p.Spec.Control
	switch {
	case HasEnded(p):
		return ""
	case p.Status.Phase == "":
		return "an executor: no executor has taken it yet"
	case control.Verb == v1alpha1.PlanCancel:
		return "its end, which " + NameActor(control.RequestedBy) + " asked for"
	case p.Status.Phase == v1alpha1.PlanPaused && control.Verb == v1alpha1.PlanPause:
		return AppendReason("a person to resume it; paused by "+NameActor(control.RequestedBy), control.Reason)
	case control.Verb == v1alpha1.PlanPause:
		return "its pause, which " + NameActor(control.RequestedBy) + " asked for"
	case p.Status.DeferralReason == "":
		return ""
	case p.Status.ResumeTime == nil:
		return p.Status.DeferralReason
	}
	return fmt.Sprintf("%s (%s)", p.Status.DeferralReason, FormatUntil(*p.Status.ResumeTime, now))
}

// reasonCode is the code at the begin of a reason in words, such as that of a limit.
var reasonCode = regexp.MustCompile(`^([A-Z][a-z]+(?:[A-Z][a-z]+)*): `)

// CodeWaiting gives the reason for which a plan waits as a code, and the time until a known end of the wait.
// It is empty for a plan that runs or has ended.
func CodeWaiting(p *v1alpha1.RemediationPlan, now time.Time) string {
	code, control, status := "Held", p.Spec.Control.Verb, &p.Status
	switch {
	case HasEnded(p):
		return ""
	case status.Phase == "":
		return "NoExecutor"
	case control == v1alpha1.PlanCancel:
		return "CancelRequested"
	case control == v1alpha1.PlanPause && status.Phase == v1alpha1.PlanPaused:
		return "PausedByUser"
	case control == v1alpha1.PlanPause:
		return "PauseRequested"
	case status.DeferralReason == "":
		return ""
	case status.Phase == v1alpha1.PlanScheduled:
		code = "Scheduled"
	case reasonCode.MatchString(status.DeferralReason):
		code = reasonCode.FindStringSubmatch(status.DeferralReason)[1]
	}
	if status.ResumeTime != nil && status.ResumeTime.After(now) {
		code += " (in " + FormatDuration(status.ResumeTime.Sub(now)) + ")"
	}
	return code
}

// FormatProgress gives the targets of a plan that have succeeded, of all, and the failed and skipped ones if there are any.
func FormatProgress(p *v1alpha1.RemediationPlan) string {
	counts := p.Status.Counts
	var others []string
	if counts.Failed > 0 {
		others = append(others, fmt.Sprintf("%d failed", counts.Failed))
	}
	if counts.Skipped > 0 {
		others = append(others, fmt.Sprintf("%d skipped", counts.Skipped))
	}
	progress := fmt.Sprintf("%d/%d", counts.Succeeded, len(p.Spec.Plan.Targets))
	if len(others) > 0 {
		progress += " (" + strings.Join(others, ", ") + ")"
	}
	return progress
}

// Field is a value with its label.
type Field struct{ Label, Value string }

// DescribePlan gives the fields of a plan, those without a value included.
func DescribePlan(p *v1alpha1.RemediationPlan, wide bool, now time.Time) []Field {
	plan, counts := &p.Spec.Plan, p.Status.Counts
	asked, executor := "", ""
	if control := p.Spec.Control; control.Verb != "" {
		asked = AppendReason(fmt.Sprintf("%s, by %s", control.Verb, control.RequestedBy), control.Reason)
	}
	if p.Status.Holder != "" {
		executor = fmt.Sprintf("%s (epoch %d)", p.Status.Holder, p.Status.Epoch)
	}
	return append([]Field{
		{"Plan", PlanName(p)},
		{"Phase", DescribePhase(p)},
		{"Waiting for", DescribeWaiting(p, now)},
		{"Ended by", p.Status.EndedBy},
		{"Because", p.Status.EndedReason},
		{"Steps", fmt.Sprintf("%d: %d succeeded, %d failed, %d skipped", len(plan.Targets), counts.Succeeded, counts.Failed, counts.Skipped)},
		{"Policy", fmt.Sprintf("%s (generation %d, %s)", plan.Policy.Name, plan.Policy.Generation, FormatHash(plan.Policy.Digest, wide))},
		{"Environment", plan.EnvironmentName},
		{"Trigger", fmt.Sprintf("%s, strategy %s", plan.Trigger, plan.Strategy)},
		{"Initiated by", describeInitiator(plan)},
		{"Asked", asked},
		{"Executor", executor},
		{"Correlation", plan.CorrelationID},
		{"Drift report", plan.DriftReportID},
	}, describeTimes(p, now)...)
}

// describeInitiator names the user that asked for a plan, and the users with the rights of the plan.
func describeInitiator(plan *v1alpha1.PlannedRemediation) string {
	words := fmt.Sprintf("%s, acting with the permissions of %s", plan.InitiatedBy, plan.Requester)
	if plan.Request != nil {
		words += " and of the user that the policy acts as, by request " + plan.Request.Name
	}
	return words
}

func describeTimes(p *v1alpha1.RemediationPlan, now time.Time) []Field {
	end := Field{"Deadline", FormatTime(&p.Spec.Plan.DeadlineTime, now)}
	if at := p.Status.CompletionTime; at != nil {
		took := ""
		if p.Status.StartTime != nil {
			took = fmt.Sprintf(", took %s", at.Sub(p.Status.StartTime.Time).Round(time.Second))
		}
		end = Field{"Completed", FormatTime(at, now) + took}
	}
	return []Field{
		{"Created", FormatTime(&p.CreationTimestamp, now)},
		{"Scheduled for", FormatTime(p.Spec.Plan.ScheduledTime, now)},
		{"Started", FormatTime(p.Status.StartTime, now)},
		end,
		{"Targets took", FormatDurations(durationsOf(p))},
	}
}

// DescribeBatch gives the steps of a batch, and the condition of the next batch.
func DescribeBatch(b *v1alpha1.PlanBatch, last bool) string {
	steps := make([]string, 0, len(b.Steps))
	for _, step := range b.Steps {
		steps = append(steps, fmt.Sprint(step))
	}
	noun := "steps"
	if len(steps) == 1 {
		noun = "step"
	}
	text := fmt.Sprintf("%s %s", noun, strings.Join(steps, ", "))
	if !last {
		text += "; the next one only when all of it is healthy"
	}
	if b.DelayAfter != nil && b.DelayAfter.Duration > 0 {
		text += fmt.Sprintf(", and %s later", b.DelayAfter.Duration)
	}
	return text
}

// FormatTook says how long a step or plan took, after a comma; empty where that is not known.
func FormatTook(took *metav1.Duration) string {
	if took == nil {
		return ""
	}
	return ", took " + took.Duration.String()
}

// FormatDurations tells how long the targets took; empty where no target began.
func FormatDurations(took packet.Durations) string {
	if took.Total == nil {
		return ""
	}
	return fmt.Sprintf("%s in total, %s on average", took.Total.Duration, took.Average.Round(time.Millisecond))
}
