// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// The API takes plans of a person with their targets in any order, and events are routed by
// their severity.
func TestANotificationHasTheWorstSeverityOfThePlan(t *testing.T) {
	levels := func(levels ...v1alpha1.SeverityLevel) *v1alpha1.RemediationPlan {
		p := &v1alpha1.RemediationPlan{}
		for _, level := range levels {
			p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, v1alpha1.PlanTarget{Severity: v1alpha1.Severity{Level: level}})
		}
		return p
	}
	for name, tc := range map[string]struct {
		plan *v1alpha1.RemediationPlan
		want v1alpha1.SeverityLevel
	}{
		"the worst comes first":  {levels(v1alpha1.SeverityHigh, v1alpha1.SeverityLow), v1alpha1.SeverityHigh},
		"the worst comes last":   {levels(v1alpha1.SeverityLow, v1alpha1.SeverityCritical), v1alpha1.SeverityCritical},
		"there are no targets":   {levels(), ""},
		"the level is not known": {levels("Fatal"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NotificationOf(tc.plan, notify.PlanFailed, noon).Severity; got != tc.want {
				t.Errorf("the severity is %q, want %q", got, tc.want)
			}
		})
	}
}
