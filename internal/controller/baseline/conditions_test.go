// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

// always are the conditions of each Baseline with a status.
var always = []string{v1alpha1.ConditionReady, v1alpha1.ConditionDegraded, v1alpha1.ConditionAcceptanceAllowed, ConditionRecreatable}

func TestABaselineAlwaysHasItsConditions(t *testing.T) {
	retired := &metav1.Time{Time: epoch}
	findings := []v1alpha1.Finding{{Path: "/spec/replicas", Type: v1alpha1.DriftScale}}
	for name, status := range map[string]v1alpha1.BaselineStatus{
		"in sync":                       {State: v1alpha1.StateInSync},
		"drifted":                       {State: v1alpha1.StateDrifted, Findings: findings, Contention: &v1alpha1.Contention{With: []string{"a", "b"}}},
		"missing":                       {State: v1alpha1.StateMissing, Findings: findings},
		"unknown":                       {State: v1alpha1.StateUnknown},
		"with a body too large":         {State: v1alpha1.StateUnknown, Oversized: &v1alpha1.OversizedBody{By: "ci"}},
		"retired":                       {State: v1alpha1.StateRetired, RetirementTime: retired},
		"in a state of a later version": {State: "Later"},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkedSubject(time.Hour)
			s.rules = guardedRules(t)
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Status: status}
			(&Reconciler{}).writeConditions(s, &decision{}, b)
			conditions.CheckAlways(t, b.Status.Conditions, 4, always...)
			specguard.MinimizeStatus(&b.Status)
			conditions.CheckAlways(t, b.Status.Conditions, 4, always...)
		})
	}
	t.Run("released before it had a status", func(t *testing.T) {
		b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web", Generation: 4}}
		r, s := releasing(t, b)
		if err := r.markReleased(t.Context(), s, v1alpha1.ReasonNotGuarded, "no guard selects it"); err != nil {
			t.Fatal(err)
		}
		conditions.CheckAlways(t, s.baseline.Status.Conditions, 4, always...)
	})
}

// releasing is a Reconciler that knows nothing yet, and an object with a Baseline.
func releasing(t *testing.T, b *v1alpha1.Baseline) (*Reconciler, *subject) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	r := reconcilerThatMeets(t, nil, b)
	r.Metrics = metrics
	r.Prepare()
	s := &subject{key: webKey, now: epoch, baseline: &v1alpha1.Baseline{}}
	if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(b), s.baseline); err != nil {
		t.Fatal(err)
	}
	return r, s
}

// Finding K5: kubectl get baselines went on to say Drifted.
func TestABaselineThatNoGuardSelectsAnyMoreSaysNotGuarded(t *testing.T) {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web"}}
	b.Status.State, b.Status.FindingsTotal = v1alpha1.StateDrifted, 1
	b.Status.Findings = []v1alpha1.Finding{{Path: "/spec/replicas", Type: v1alpha1.DriftScale}}
	r, s := releasing(t, b)
	for _, step := range []struct {
		reason string
		want   v1alpha1.DriftState
	}{
		{reasonSuspended, v1alpha1.StateDrifted},
		{v1alpha1.ReasonNotGuarded, v1alpha1.StateNotGuarded},
		{reasonSuspended, v1alpha1.StateUnknown}, // a guard selects it again, and has compared nothing
	} {
		if err := r.markReleased(t.Context(), s, step.reason, "why"); err != nil {
			t.Fatal(err)
		}
		if status := &s.baseline.Status; status.State != step.want || len(status.Findings) != 1 {
			t.Errorf("by %s the state is %s with findings %+v, want %s", step.reason, status.State, status.Findings, step.want)
		}
	}
}

func TestARefusalToAcceptStaysUntilThereIsNothingToAccept(t *testing.T) {
	b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted}}
	for _, step := range []struct {
		name  string
		d     decision
		state v1alpha1.DriftState
		want  metav1.ConditionStatus
	}{
		{"nobody has asked", decision{}, v1alpha1.StateDrifted, metav1.ConditionTrue},
		{"a guard refuses", decision{refusal: "alice may not accept", clearAccept: true}, v1alpha1.StateDrifted, metav1.ConditionFalse},
		{"the refusal stays", decision{}, v1alpha1.StateDrifted, metav1.ConditionFalse},
		{"another request is taken", decision{clearAccept: true}, v1alpha1.StateDrifted, metav1.ConditionTrue},
		{"a guard refuses again", decision{refusal: "bob may not accept", clearAccept: true}, v1alpha1.StateDrifted, metav1.ConditionFalse},
		{"the object is in sync again", decision{}, v1alpha1.StateInSync, metav1.ConditionTrue},
	} {
		b.Generation++
		b.Status.State = step.state
		setAcceptanceAllowed(b, &step.d, epoch)
		for _, c := range b.Status.Conditions {
			if c.Status != step.want || c.ObservedGeneration != b.Generation {
				t.Errorf("%s: the condition is %+v, want %s of generation %d", step.name, c, step.want, b.Generation)
			}
		}
	}
}

// A Baseline says from its first status on that a plan may not create its object, and only of
// an object that is missing people have to be told.
func TestNoEventTellsThatAnObjectThatIsThereMayNotBeCreatedAgain(t *testing.T) {
	for name, status := range map[string]v1alpha1.BaselineStatus{
		"in sync": {State: v1alpha1.StateInSync},
		"drifted": {State: v1alpha1.StateDrifted},
		"retired": {State: v1alpha1.StateRetired, RetirementTime: &metav1.Time{Time: epoch}},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkedSubject(time.Hour)
			s.rules = guardedRules(t)
			s.baseline = &v1alpha1.Baseline{Status: status}
			r := &Reconciler{} // without a Recorder
			r.writeConditions(s, &decision{}, s.baseline)
			r.tellChecks(s, &decision{})
		})
	}
}
