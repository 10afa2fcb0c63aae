// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// StepOf is the status of a step; before an executor wrote any it is planned.
func StepOf(p *v1alpha1.RemediationPlan, index int) v1alpha1.PlanStep {
	for i := range p.Status.Steps {
		if int(p.Status.Steps[i].Index) == index {
			return p.Status.Steps[i]
		}
	}
	return v1alpha1.PlanStep{Index: int32(index), State: v1alpha1.StepPlanned} //nolint:gosec // at most ten
}

// DescribeStepState gives the state of a step with its reason, and how long the step took.
func DescribeStepState(step *v1alpha1.PlanStep) string {
	state := string(step.State)
	if step.Reason != "" {
		state += " (" + string(step.Reason) + ")"
	}
	return state + FormatTook(stepDuration(step))
}

// DescribeStep gives the target and the outcome of a step, a line for each fact; without the log.
func DescribeStep(target *v1alpha1.PlanTarget, step *v1alpha1.PlanStep, wide bool, now time.Time) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if step.Message != "" {
		add("%s", step.Message)
	}
	add("severity %s (%d), %s, since %s, by %s", target.Severity.Level, target.Severity.Score, target.DriftType, FormatAge(target.FirstSeenTime, now), ListActors(target.Actors))
	for _, path := range target.Paths {
		add("%s", NamePath(path))
	}
	if len(target.Paths) == 0 {
		add("(the whole object)")
	}
	add("%s → %s, from %s", FormatHash(target.DriftedHash, wide), FormatHash(target.DesiredHash, wide), target.Revision)
	if r := step.Result; r != nil {
		add("wrote version %s, %s (%s)", r.ResourceVersion, FormatHash(r.Hash, wide), r.Origin)
	}
	if e := step.Effect; e != nil {
		score := ""
		if e.Score != nil {
			score = fmt.Sprintf(", %s of %s", actions.FormatScore(*e.Score), actions.FormatScore(effect.Best))
		}
		add("effect %s%s (assess show %s)", e.Verdict, score, e.AssessmentName)
	}
	if s := step.Standby; s != nil {
		add("standby %s, of Service %s: %s, since %s", s.Name, s.ServiceName, s.Phase, FormatAge(s.PhaseTime, now))
	}
	if e := step.Evidence; e != nil {
		add("evidence #%d %s", e.Sequence, FormatHash(e.Digest, wide))
	}
	return lines
}

// durationsOf returns how long the targets of a plan took that have ended, as the evidence
// packet does.
func durationsOf(p *v1alpha1.RemediationPlan) packet.Durations {
	var taken []packet.Taken
	for i := range p.Status.Steps {
		taken = append(taken, stepTaken(&p.Status.Steps[i]))
	}
	return packet.Measure(taken)
}

func stepTaken(step *v1alpha1.PlanStep) packet.Taken {
	return packet.Taken{From: timeOf(step.StartTime), To: timeOf(step.CompletionTime)}
}

// stepDuration returns how long a step took from its grant to its end; nil while it has not
// ended, or when it was never granted.
func stepDuration(step *v1alpha1.PlanStep) *metav1.Duration {
	return packet.Measure([]packet.Taken{stepTaken(step)}).Total
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
