// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/controller/policy"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// reads is a check that a condition of a policy has a status and a reason, and says this.
func reads(condition string, status metav1.ConditionStatus, reason, message string) func(*v1alpha1.RemediationPolicy) error {
	return func(p *v1alpha1.RemediationPolicy) error {
		c := meta.FindStatusCondition(p.Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Errorf("%s is %+v", condition, c)
		}
		return nil
	}
}

// What the schema lets through and is a mistake all the same: the policy says so, and
// where it could do harm it does nothing.
func TestAPolicyThatReadsLikeAMistakeSaysSo(t *testing.T) {
	start(t)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RemediationPolicySpec)
		says   func(*v1alpha1.RemediationPolicy) error
		acts   bool
	}{
		"hours that never meet the maintenance window": {
			func(s *v1alpha1.RemediationPolicySpec) {
				s.Schedule = v1alpha1.RemediationSchedule{
					MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00"},
					AllowedStart:      "08:00", AllowedEnd: "18:00",
				}
			},
			reads(v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSchedule", "never meet the maintenance window"), false,
		},
		"a zone that there is not": {
			func(s *v1alpha1.RemediationPolicySpec) {
				s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
			},
			reads(v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSchedule", "spec.schedule.maintenanceWindow.timeZone"), false,
		},
		"a selector of nothing": {
			func(s *v1alpha1.RemediationPolicySpec) {
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nothing"}}
			},
			reads(policy.ConditionTargetsSelected, metav1.ConditionFalse, "NoObjects", "0 of the 2 guarded objects"), false,
		},
		"a selector of everything": {
			func(s *v1alpha1.RemediationPolicySpec) {
				s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "app", Operator: metav1.LabelSelectorOpExists},
				}}
			},
			reads(policy.ConditionTargetsSelected, metav1.ConditionTrue, "AllObjects", "all 2 guarded objects"), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has an Environment of its own, and mostly waits
			w := newWorld(t)
			w.UnderGuard()
			w.running("web", "db")
			w.policy(tc.change)
			w.SetImage(alice, "web", evil)
			w.untilPolicy("it says what is wrong", tc.says)
			if tc.acts {
				w.untilTargets("web")
			} else if plans := w.plans(); len(plans) > 0 {
				t.Errorf("it made %d plans", len(plans))
			}
		})
	}
}

// While too few of the objects that did not drift are healthy, something else is
// wrong, and nothing is put back.
func TestNothingIsPutBackWhileTooFewOthersAreHealthy(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.running("web", "x", "y") // of two that drift within a second the first by name is next
	w.Deploy(ci, "z")          // it never becomes ready
	w.UntilIs("z", "InSync")
	w.SetImage(alice, "web", evil)
	w.policy()
	w.untilPolicy("two of three are too few", func(p *v1alpha1.RemediationPolicy) error {
		if !strings.Contains(p.Status.WaitingFor, "1 TooFewHealthy") {
			return fmt.Errorf("it waits for %q", p.Status.WaitingFor)
		}
		return counts(4, 1, 1)(p)
	})
	if plans := w.plans(); len(plans) > 0 {
		t.Errorf("it made %d plans", len(plans))
	}
	w.ready("z")
	w.SetImage(alice, "x", evil) // an event, for nobody watches what becomes ready
	w.untilTargets("web")        // there is room for one, and it is the older
}
