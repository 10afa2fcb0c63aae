// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// baseline is one that is settled, changed by what a test says.
func baseline(change func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{}
	b.Generation, b.Status.ObservedGeneration = 3, 3
	b.Status.State = v1alpha1.StateInSync
	if change != nil {
		change(b)
	}
	return b
}

func withCondition(b *v1alpha1.Baseline, conditionType, reason string, status metav1.ConditionStatus) {
	b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason})
}

func TestSettled(t *testing.T) {
	tests := map[string]struct {
		change   func(*v1alpha1.Baseline)
		failures int
		want     Obstacle
	}{
		"in sync":                      {},
		"drift that waits for a plan":  {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateDrifted }},
		"missing":                      {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateMissing }},
		"never seen":                   {change: func(b *v1alpha1.Baseline) { b.Status.State = "" }, want: ObstacleStateUnknown},
		"unreadable":                   {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateUnknown }, want: ObstacleStateUnknown},
		"a state of tomorrow":          {change: func(b *v1alpha1.Baseline) { b.Status.State = "Blurred" }, want: ObstacleStateUnknown},
		"unreadable by a failed check": {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateUnknown }, failures: 1},
		"its body is lost": {
			change: func(b *v1alpha1.Baseline) {
				b.Status.State = v1alpha1.StateUnknown
				withCondition(b, v1alpha1.ConditionReady, v1alpha1.ReasonBodyLost, metav1.ConditionUnknown)
			},
			failures: 1, want: ObstacleBodyLost,
		},
		"a wish that was not answered":         {change: func(b *v1alpha1.Baseline) { b.Generation++ }, want: ObstacleLagging},
		"a status from before it was replaced": {change: func(b *v1alpha1.Baseline) { b.Generation = 1 }, want: ObstacleLagging},
		"a plan holds it":                      {change: func(b *v1alpha1.Baseline) { b.Status.PlanName = "plan-1" }, want: ObstacleClaimed},
		"a plan holds it after a failed check": {change: func(b *v1alpha1.Baseline) { b.Status.PlanName = "plan-1" }, failures: 1, want: ObstacleClaimed},
		"writers fight over it":                {change: func(b *v1alpha1.Baseline) { b.Status.Contention = &v1alpha1.Contention{} }, want: ObstacleContended},
		"a condition says that they do": {change: func(b *v1alpha1.Baseline) {
			withCondition(b, v1alpha1.ConditionDegraded, v1alpha1.ReasonContended, metav1.ConditionTrue)
		}, want: ObstacleContended},
		"a condition says that they ended": {change: func(b *v1alpha1.Baseline) {
			withCondition(b, v1alpha1.ConditionDegraded, "NotDegraded", metav1.ConditionFalse)
		}},
		"retired": {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateRetired }, want: ObstacleNotGuarded},
		"no guard selects it": {change: func(b *v1alpha1.Baseline) {
			b.Status.State = v1alpha1.StateNotGuarded
		}, want: ObstacleNotGuarded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Settled(baseline(tc.change), tc.failures); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
