// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Mild returns the obstacle when a policy does not put a drift back by itself at a time, because
// the severity fell since the plan was made. The executor asks before a step what the planner
// asked for its plan.
//
// The age of a drift only grows. So a plan that was made by the age of its drift is not judged by
// the age again: the clocks of planner and executor differ.
func Mild(spec *v1alpha1.RemediationPolicySpec, was, is *v1alpha1.Severity, firstSeen, now time.Time) Obstacle {
	in := &Input{Policy: Policy{Spec: *spec}, Now: now}
	d := &Drift{Severity: *is, FirstSeen: firstSeen}
	if o := severity(in, d); o.Reason != "" {
		return o
	}
	if StageOf(in, &Drift{Severity: *was}) == StageNotify { // without an age
		return Obstacle{}
	}
	return notifiedFirst(in, d)
}
