// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The discovery server answers the same request once, so a retry of the next refused work was no request.
func TestARetryNamesTheWorkThatWasNotDone(t *testing.T) {
	long := strings.Repeat("a", 250)
	for name, c := range map[string]struct {
		verb         v1alpha1.RolloutVerb
		phase        v1alpha1.ReleaseWorkPhase
		reason, want string
	}{
		"of a work that was refused":        {"Retry", v1alpha1.WorkRefused, "", "(work 2)"},
		"of a work that failed":             {"Retry", v1alpha1.WorkFailed, "rights are there", "rights are there (work 2)"},
		"with a reason that fills the text": {"Retry", v1alpha1.WorkFailed, long, long},
		"of a run whose works succeeded":    {"Retry", v1alpha1.WorkSucceeded, "again", "again"},
		"but no other verb":                 {"Rollback", v1alpha1.WorkRefused, "again", "again"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Spec.Rollout = &v1alpha1.Rollout{}
			r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 1, State: "Running"}, Works: []v1alpha1.RolloutWork{{Number: 1}, {Number: 2, Phase: c.phase}}}
			control, err := PlanReleaseVerb(r, c.verb, 0, "", "ada", c.reason)
			if err != nil || control.Reason != c.want {
				t.Errorf("the reason is %q, want %q: %v", control.Reason, c.want, err)
			}
		})
	}
}
