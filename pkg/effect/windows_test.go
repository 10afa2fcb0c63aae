// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestWindowsOfAPolicy(t *testing.T) {
	of := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := map[string]struct {
		cooldown *metav1.Duration
		says     v1alpha1.RemediationEffectiveness
		want     Windows
	}{
		"a policy that says nothing":           {nil, v1alpha1.RemediationEffectiveness{}, Windows{Stabilization: 5 * time.Minute, Validity: 30 * time.Minute}},
		"the cooldown is the stabilization":    {of(time.Minute), v1alpha1.RemediationEffectiveness{}, Windows{Stabilization: time.Minute, Validity: 30 * time.Minute}},
		"a stored policy without a cooldown":   {of(0), v1alpha1.RemediationEffectiveness{}, Windows{Stabilization: 30 * time.Second, Validity: 30 * time.Minute}},
		"a long cooldown is no long wait":      {of(time.Hour), v1alpha1.RemediationEffectiveness{}, Windows{Stabilization: 5 * time.Minute, Validity: 30 * time.Minute}},
		"what the policy says goes before all": {of(time.Hour), v1alpha1.RemediationEffectiveness{Stabilization: of(20 * time.Minute), Validity: of(2 * time.Hour), AlertCheckDelay: of(time.Minute), PropagationDelay: of(time.Second)}, Windows{Propagation: time.Second, Stabilization: 20 * time.Minute, AlertDelay: time.Minute, Validity: 2 * time.Hour}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.RemediationPolicySpec{Safety: v1alpha1.RemediationSafety{Cooldown: tc.cooldown}, Effectiveness: tc.says}
			if got := WindowsOfPolicy(policy); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
