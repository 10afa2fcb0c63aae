// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func env(name string, c v1alpha1.Criticality, age time.Duration, match map[string]string) *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(-age))},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       c,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: match},
		},
	}
}

func TestStatus(t *testing.T) {
	tests := map[string]struct {
		share       environment.Share
		wantReady   metav1.ConditionStatus
		wantOverlap string
	}{
		"in force": {share: environment.Share{Namespaces: []string{"a", "b"}}, wantReady: metav1.ConditionTrue},
		"a bad selector stalls": {
			share: environment.Share{Invalid: fmt.Errorf("spec.namespaceSelector: bad")}, wantReady: metav1.ConditionFalse,
		},
		"an overlap names the owner and stays ready": {
			share:       environment.Share{Overlaps: []environment.Overlap{{Namespace: "shop", Owner: "prod"}}},
			wantReady:   metav1.ConditionTrue,
			wantOverlap: "shop belongs to prod",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := env("dev", v1alpha1.CriticalityDevelopment, 0, nil)
			status(e, tc.share, condition.Set{Conditions: &e.Status.Conditions, Now: epoch})
			ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tc.wantReady {
				t.Errorf("Ready is %v, want %s", ready, tc.wantReady)
			}
			if int(e.Status.Namespaces) != len(tc.share.Namespaces) {
				t.Errorf("counts %d namespaces, want %d", e.Status.Namespaces, len(tc.share.Namespaces))
			}
			overlap := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDegraded)
			switch {
			case overlap == nil || tc.wantOverlap == "" && overlap.Status == metav1.ConditionTrue:
				t.Errorf("unexpected overlap: %+v", overlap)
			case tc.wantOverlap != "" && (overlap.Status != metav1.ConditionTrue || !strings.Contains(overlap.Message, tc.wantOverlap)):
				t.Errorf("overlap is %v, want %q in it", overlap, tc.wantOverlap)
			}
		})
	}
}

func TestAnEnvironmentAlwaysHasItsConditions(t *testing.T) {
	for name, share := range map[string]environment.Share{
		"in force":               {Namespaces: []string{"a"}},
		"with a bad selector":    {Invalid: fmt.Errorf("spec.namespaceSelector: bad")},
		"that overlaps":          {Overlaps: []environment.Overlap{{Namespace: "shop", Owner: "prod"}}},
		"that has no namespaces": {},
	} {
		t.Run(name, func(t *testing.T) {
			e := env("dev", v1alpha1.CriticalityDevelopment, 0, nil)
			e.Generation = 3
			status(e, share, condition.Set{Conditions: &e.Status.Conditions, Generation: e.Generation, Now: epoch})
			conditions.CheckAlways(t, e.Status.Conditions, 3, v1alpha1.ConditionReady, v1alpha1.ConditionDegraded)
		})
	}
}
