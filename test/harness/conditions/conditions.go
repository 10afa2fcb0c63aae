// SPDX-License-Identifier: Apache-2.0

// Package conditions checks the conditions of objects against the API conventions.
package conditions

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// CheckAlways checks that an object has a condition of each type in always, and of no other
// one. Reconciling and Stalled may be there as well while they are True, and never both. Each
// condition has a reason in CamelCase, a message, a time and the generation.
func CheckAlways(t *testing.T, conditions []metav1.Condition, generation int64, always ...string) {
	t.Helper()
	var got, stuck []string
	for i := range conditions {
		c := &conditions[i]
		switch c.Type {
		case v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled:
			if stuck = append(stuck, c.Type); c.Status != metav1.ConditionTrue {
				t.Errorf("%s is %s: kstatus wants it to be absent", c.Type, c.Status)
			}
		default:
			got = append(got, c.Type)
		}
		if !camelCase.MatchString(c.Reason) || c.Message == "" || c.ObservedGeneration != generation || c.LastTransitionTime.IsZero() {
			t.Errorf("%s lacks a reason in CamelCase, a message, a time or generation %d: %+v", c.Type, generation, c)
		}
	}
	if len(stuck) > 1 {
		t.Errorf("%v are there at once", stuck)
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(always)), got); diff != "" {
		t.Errorf("types of conditions (-want +got):\n%s", diff)
	}
}
