// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func baselineOf(namespace string, state v1alpha1.DriftState, age time.Duration, guards ...string) v1alpha1.Baseline {
	b := v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	b.Status.State, b.Status.Guards = state, guards
	if state != v1alpha1.StateInSync {
		b.Status.FirstSeenTime = &metav1.Time{Time: epoch.Add(-age)}
	}
	return b
}

func TestTallies(t *testing.T) {
	retired := baselineOf("shop", v1alpha1.StateMissing, 0, "SpecGuard/g")
	retired.Status.State = v1alpha1.StateRetired
	lost := baselineOf("shop", v1alpha1.StateDrifted, 0, "SpecGuard/g")
	lost.Status.State = v1alpha1.StateNotGuarded
	unexpected := baselineOf("shop", v1alpha1.StateDrifted, 0, "SpecGuard/g")
	unexpected.Status.Findings = []v1alpha1.Finding{{Class: v1alpha1.ClassObjectUnexpected}}
	got := Tallies([]v1alpha1.Baseline{
		baselineOf("shop", v1alpha1.StateInSync, 0, "SpecGuard/g", "ClusterSpecGuard/c"),
		baselineOf("shop", v1alpha1.StateDrifted, time.Hour, "SpecGuard/g"),
		baselineOf("shop", v1alpha1.StateMissing, time.Minute, "SpecGuard/g"),
		baselineOf("shop", v1alpha1.StateUnknown, 0, "SpecGuard/g"),
		baselineOf("other", v1alpha1.StateDrifted, 0, "SpecGuard/g", "ClusterSpecGuard/c"),
		retired, lost, unexpected,
	})
	drifting := func(namespace string, age time.Duration) specguard.Drifting {
		return specguard.Drifting{Namespace: namespace, FirstSeen: epoch.Add(-age), Causes: specguard.Causes{}}
	}
	want := map[specguard.GuardRef]Tally{
		{Namespace: "shop", Name: "g"}: {Objects: 5, Drifted: 3, Unknown: 1, Population: specguard.Population{
			Objects: map[string]int{"shop": 4}, Drifting: []specguard.Drifting{drifting("shop", time.Hour), drifting("shop", time.Minute)},
		}},
		{Namespace: "other", Name: "g"}: {Objects: 1, Drifted: 1, Population: specguard.Population{
			Objects: map[string]int{"other": 1}, Drifting: []specguard.Drifting{drifting("other", 0)},
		}},
		{Name: "c"}: {Objects: 2, Drifted: 1, Population: specguard.Population{
			Objects: map[string]int{"shop": 1, "other": 1}, Drifting: []specguard.Drifting{drifting("other", 0)},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
}
