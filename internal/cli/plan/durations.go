// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

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
