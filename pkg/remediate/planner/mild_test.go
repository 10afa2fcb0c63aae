// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestADriftThatBecameMilderIsNotPutBackByItsPolicy(t *testing.T) {
	escalation := func(age time.Duration, level v1alpha1.SeverityLevel) *v1alpha1.RemediationEscalation {
		when := v1alpha1.RemediationConditions{MinimumSeverity: level}
		if age > 0 {
			when.MinimumDriftAge = duration(age)
		}
		return &v1alpha1.RemediationEscalation{InitialAction: v1alpha1.InitialNotifyOnly, RemediateWhenAny: when}
	}
	high := v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 65}
	tests := map[string]struct {
		spec     v1alpha1.RemediationPolicySpec
		severity v1alpha1.Severity
		was      v1alpha1.SeverityLevel
		want     Reason
	}{
		"the policy has no conditions":                    {v1alpha1.RemediationPolicySpec{}, high, v1alpha1.SeverityCritical, ""},
		"it is as severe as the policy wants":             {v1alpha1.RemediationPolicySpec{MinimumSeverity: v1alpha1.SeverityHigh}, high, v1alpha1.SeverityCritical, ""},
		"it is milder than the policy wants":              {v1alpha1.RemediationPolicySpec{MinimumSeverity: v1alpha1.SeverityCritical}, high, v1alpha1.SeverityCritical, ReasonBelowSeverity},
		"it has escalated no more":                        {v1alpha1.RemediationPolicySpec{Trigger: v1alpha1.TriggerSeverityEscalation}, v1alpha1.Severity{Level: v1alpha1.SeverityHigh, First: v1alpha1.SeverityHigh}, v1alpha1.SeverityCritical, ReasonNotEscalated},
		"it is as severe as the second stage":             {v1alpha1.RemediationPolicySpec{Escalation: escalation(0, v1alpha1.SeverityHigh)}, high, v1alpha1.SeverityCritical, ""},
		"it went back to the first stage":                 {v1alpha1.RemediationPolicySpec{Escalation: escalation(0, v1alpha1.SeverityCritical)}, high, v1alpha1.SeverityCritical, ReasonNotifyStage},
		"it is milder, and old enough":                    {v1alpha1.RemediationPolicySpec{Escalation: escalation(time.Hour, v1alpha1.SeverityCritical)}, high, v1alpha1.SeverityCritical, ""},
		"it is milder, and not old enough yet":            {v1alpha1.RemediationPolicySpec{Escalation: escalation(3*time.Hour, v1alpha1.SeverityCritical)}, high, v1alpha1.SeverityCritical, ReasonNotifyStage},
		"its age made the plan, by a clock that is ahead": {v1alpha1.RemediationPolicySpec{Escalation: escalation(2*time.Hour+time.Second, v1alpha1.SeverityCritical)}, high, v1alpha1.SeverityHigh, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Mild(&test.spec, &v1alpha1.Severity{Level: test.was}, &test.severity, epoch.Add(-2*time.Hour), epoch); got.Reason != test.want {
				t.Errorf("got %q, want %q", got.Reason, test.want)
			}
		})
	}
}
