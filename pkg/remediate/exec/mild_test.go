// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func TestAStepAsksTheSeverityThatItsDriftHasNow(t *testing.T) {
	low := &v1alpha1.Severity{Level: v1alpha1.SeverityLow, Score: 20}
	for name, test := range map[string]struct {
		baseline func(*v1alpha1.BaselineStatus)
		plan     func(*v1alpha1.PlannedRemediation)
		wrote    bool
	}{
		"it is not known": {baseline: func(*v1alpha1.BaselineStatus) {}, wrote: true},
		"it is as it was": {baseline: func(s *v1alpha1.BaselineStatus) { s.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityHigh} }, wrote: true},
		"it fell":         {baseline: func(s *v1alpha1.BaselineStatus) { s.Severity = low }},
		"it fell, and a person asked": {
			baseline: func(s *v1alpha1.BaselineStatus) { s.Severity = low },
			plan: func(p *v1alpha1.PlannedRemediation) {
				p.InitiatedBy, p.Requester, p.RequesterGroups = "bob", "bob", nil
			}, wrote: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			digest := ""
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
				p.Spec.MinimumSeverity = v1alpha1.SeverityHigh
				digest = planner.Digest(&p.Spec)
			})
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
				p.Spec.Plan.Policy.Digest = digest
				if test.plan != nil {
					test.plan(&p.Spec.Plan)
				}
			})
			w.changeBaseline(func(b *v1alpha1.Baseline) { test.baseline(&b.Status) })
			w.carry()
			step := w.now().Status.Steps[0]
			if wrote := len(w.targets.stored) > 0; wrote != test.wrote || !wrote && step.Reason != v1alpha1.ReasonBelowSeverity {
				t.Errorf("wrote %t, want %t; the step is %s %s", wrote, test.wrote, step.State, step.Reason)
			}
		})
	}
}
