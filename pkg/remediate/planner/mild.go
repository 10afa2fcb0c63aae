// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Mild returns the obstacle when a policy does not put a drift of a severity back by itself at a
// time. The executor asks before a step what the planner asked for its plan: a severity may fall
// after the plan was made.
func Mild(spec *v1alpha1.RemediationPolicySpec, of *v1alpha1.Severity, firstSeen, now time.Time) Obstacle {
	in, d := &Input{Policy: Policy{Spec: *spec}, Now: now}, &Drift{Severity: *of, FirstSeen: firstSeen}
	if o := severity(in, d); o.Reason != "" {
		return o
	}
	return notifiedFirst(in, d)
}
