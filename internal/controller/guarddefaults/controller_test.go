// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

func defaults(name, environment string, age time.Duration) v1alpha1.GuardDefaults {
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return v1alpha1.GuardDefaults{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(-age))},
		Spec:       v1alpha1.GuardDefaultsSpec{EnvironmentName: environment},
	}
}

func TestARuleThatCannotBeCompiledIsTold(t *testing.T) {
	const inForce, where = "Active", "in force for the whole installation"
	rule := func(expression string) func(*v1alpha1.GuardDefaultsSpec) {
		return func(s *v1alpha1.GuardDefaultsSpec) {
			s.Readiness = append(s.Readiness, v1alpha1.ReadinessRule{APIGroup: "shop.example", Kind: "Basket", Expression: expression})
		}
	}
	const broken = `spec.readiness[1].expression: 1:1: undeclared reference to 'self' (in container '')`
	tests := map[string]struct {
		change []func(*v1alpha1.GuardDefaultsSpec)
		given  guarddefaults.Verdict
		want   guarddefaults.Verdict
	}{
		"no rules":   {nil, guarddefaults.Verdict{Active: true, Reason: inForce, Message: where}, guarddefaults.Verdict{Active: true, Reason: inForce, Message: where}},
		"good rules": {[]func(*v1alpha1.GuardDefaultsSpec){rule("true")}, guarddefaults.Verdict{Active: true, Reason: inForce, Message: where}, guarddefaults.Verdict{Active: true, Reason: inForce, Message: where}},
		"a rule that is none": {
			[]func(*v1alpha1.GuardDefaultsSpec){rule("true"), rule("self.phase")}, guarddefaults.Verdict{Active: true, Reason: inForce, Message: where},
			guarddefaults.Verdict{Active: true, Broken: true, Reason: v1alpha1.ReasonInvalidExpression, Message: where + ", but no object of these kinds is ready: " + broken},
		},
		"a rule that is none, of defaults that are not in force": {
			[]func(*v1alpha1.GuardDefaultsSpec){rule("self.phase")}, guarddefaults.Verdict{Reason: "OlderActive", Message: "older"}, guarddefaults.Verdict{Reason: "OlderActive", Message: "older"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := defaults("platform", "", 0)
			for _, change := range test.change {
				change(&d.Spec)
			}
			if diff := cmp.Diff(test.want, (&Controller{}).withRules(&d, test.given)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuardDefaultsAlwaysHaveTheirConditions(t *testing.T) {
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	first, second, lost := defaults("first", "", time.Hour), defaults("second", "", 0), defaults("lost", "nowhere", 0)
	c := fakeclient.NewBuilder(types).WithObjects(&first, &second, &lost).WithStatusSubresource(&v1alpha1.GuardDefaults{}).Build()
	controller := &Controller{Client: c, Clock: testingclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	if _, err := controller.Reconcile(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second", "lost"} {
		t.Run(name, func(t *testing.T) {
			var d v1alpha1.GuardDefaults
			if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &d); err != nil {
				t.Fatal(err)
			}
			conditions.CheckAlways(t, d.Status.Conditions, d.Generation, v1alpha1.ConditionReady)
		})
	}
}
