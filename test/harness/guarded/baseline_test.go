// SPDX-License-Identifier: Apache-2.0

package guarded_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

func TestDescribe(t *testing.T) {
	by := func(user string, class v1alpha1.ActorClass, source v1alpha1.ActorSource) v1alpha1.Actor {
		return v1alpha1.Actor{User: user, Class: class, Source: source}
	}
	image := v1alpha1.Finding{Operation: v1alpha1.OperationChanged, Path: guarded.ImagePath, Actor: by("alice", v1alpha1.ActorUntrusted, v1alpha1.ActorSourceWriterStamp)}
	gone := v1alpha1.Finding{Operation: v1alpha1.OperationRemoved, Actor: by("", v1alpha1.ActorUnknown, v1alpha1.ActorSourceNone)}
	now := metav1.Now()
	tests := map[string]struct {
		status v1alpha1.BaselineStatus
		want   string
	}{
		"nothing found": {v1alpha1.BaselineStatus{State: v1alpha1.StateInSync}, "InSync"},
		"one finding": {
			v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, Findings: []v1alpha1.Finding{image}},
			"Drifted: Changed " + guarded.ImagePath + " by alice (Untrusted, WriterStamp)",
		},
		"several keep their order, and what has no path or no user says so": {
			v1alpha1.BaselineStatus{State: v1alpha1.StateMissing, Findings: []v1alpha1.Finding{image, gone}},
			"Missing: Changed " + guarded.ImagePath + " by alice (Untrusted, WriterStamp); Removed object by ? (Unknown, None)",
		},
		"a masked path": {
			v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Masks: []v1alpha1.Mask{{Rule: "autoscaler", Path: "/spec/replicas"}}},
			"InSync [autoscaler /spec/replicas]",
		},
		"a retired one": {v1alpha1.BaselineStatus{State: v1alpha1.StateRetired, RetirementTime: &now}, "Retired"},
		"one that came back after it was retired": {v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, RetirementTime: &now}, "Drifted retired"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{Status: tc.status}
			if got := guarded.Describe(b); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if err := guarded.Reads(tc.want)(b); err != nil {
				t.Error(err)
			}
			if err := guarded.Reads(tc.want + " ")(b); err == nil {
				t.Error("another text is taken for it")
			}
		})
	}
}

func TestReady(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, ObservedGeneration: generation}}
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		ready      bool
	}{
		"nothing is told":           {nil, false},
		"it is ready":               {condition(metav1.ConditionTrue, 2), true},
		"it is not":                 {condition(metav1.ConditionFalse, 2), false},
		"it was, before the change": {condition(metav1.ConditionTrue, 1), false},
		"nobody knows":              {condition(metav1.ConditionUnknown, 2), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := guarded.Guard("shop", func(g *v1alpha1.SpecGuard) { g.Generation, g.Status.Conditions = 2, tc.conditions })
			if err := guarded.Ready(g); (err == nil) != tc.ready {
				t.Errorf("got %v, want ready %v", err, tc.ready)
			}
		})
	}
}
