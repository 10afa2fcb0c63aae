// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D7 of the review of remediation: only the planner asked how old a drift was.
func TestTheBoundOnTheAgeOfADriftIsReadForAPlanThatNoPersonAskedFor(t *testing.T) {
	const oldest = 24 * time.Hour
	for name, test := range map[string]struct {
		plan func(*v1alpha1.PlannedRemediation)
		want time.Duration
	}{
		"a plan of the policy itself": {func(*v1alpha1.PlannedRemediation) {}, oldest},
		"a plan of a person":          {func(p *v1alpha1.PlannedRemediation) { p.InitiatedBy = "alice" }, 0},
		"a plan that waits for one":   {func(p *v1alpha1.PlannedRemediation) { p.Trigger = v1alpha1.TriggerManual }, 0},
		"a plan that begins at once":  {func(p *v1alpha1.PlannedRemediation) { p.Trigger = v1alpha1.TriggerImmediate }, oldest},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.MaximumDriftAge = &metav1.Duration{Duration: oldest} })
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) { test.plan(&p.Spec.Plan) })
			if got := w.open().look(t.Context()).MaximumDriftAge; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
