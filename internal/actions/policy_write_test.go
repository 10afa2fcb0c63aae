// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAPolicyIsSignedByItsWriter(t *testing.T) {
	alice := authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre", "dev"}}
	spec := func(mode v1alpha1.PolicyMode, by string, groups ...string) v1alpha1.RemediationPolicySpec {
		return v1alpha1.RemediationPolicySpec{Mode: mode, RequestedBy: by, RequestedByGroups: groups}
	}
	account := func(groups ...string) v1alpha1.RemediationPolicySpec {
		return v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, ServiceAccountName: "ops/fixer", RequestedBy: "bob", RequestedByGroups: groups}
	}
	for name, tc := range map[string]struct {
		spec   v1alpha1.RemediationPolicySpec
		by     string
		groups []string
		fails  bool
	}{
		"a policy that acts":               {spec: spec(v1alpha1.PolicyModeActive, ""), by: "alice", groups: []string{"sre", "dev"}},
		"a policy of another author":       {spec: spec(v1alpha1.PolicyModeActive, "bob", "sre"), by: "alice", groups: []string{"sre"}},
		"groups of another author":         {spec: spec(v1alpha1.PolicyModeActive, "bob", "root"), fails: true},
		"a policy that observes":           {spec: spec("", "bob", "root"), by: "alice"},
		"a policy that is halted":          {spec: spec(v1alpha1.PolicyModeHalted, ""), by: "alice"},
		"a policy of a service account":    {spec: account()},
		"a service account and its groups": {spec: account("sre"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := SignPolicy(&tc.spec, alice)
			if tc.fails {
				if !IsGroupsRefusal(err) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if diff := cmp.Diff(tc.groups, tc.spec.RequestedByGroups); err != nil || tc.spec.RequestedBy != tc.by || diff != "" {
				t.Errorf("it is by %q (%v), groups (-want +got):\n%s", tc.spec.RequestedBy, err, diff)
			}
		})
	}
}

func TestAPolicyIsTheSameWhoeverWritesIt(t *testing.T) {
	standing := v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice", RequestedByGroups: []string{"sre"}, Action: v1alpha1.ActionReconcile}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RemediationPolicySpec)
		want   bool
	}{
		"no change":            {func(*v1alpha1.RemediationPolicySpec) {}, true},
		"another author":       {func(s *v1alpha1.RemediationPolicySpec) { s.RequestedBy = "bob" }, true},
		"groups that are left": {func(s *v1alpha1.RemediationPolicySpec) { s.RequestedByGroups = nil }, true},
		"other groups":         {func(s *v1alpha1.RemediationPolicySpec) { s.RequestedByGroups = []string{"dev"} }, false},
		"another action":       {func(s *v1alpha1.RemediationPolicySpec) { s.Action = v1alpha1.ActionScale }, false},
		"another mode":         {func(s *v1alpha1.RemediationPolicySpec) { s.Mode = v1alpha1.PolicyModeHalted }, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := standing.DeepCopy()
			tc.change(asked)
			before := asked.DeepCopy()
			if got := IsSamePolicy(&standing, asked); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if diff := cmp.Diff(before, asked); diff != "" {
				t.Errorf("what was asked for is changed:\n%s", diff)
			}
		})
	}
}

func TestTheReasonOfAModeReplacesTheOneBefore(t *testing.T) {
	said := map[string]string{v1alpha1.AnnotationModeReason: "INC-1"}
	for name, tc := range map[string]struct {
		before map[string]string
		reason string
		want   any // the metadata of the patch
	}{
		"no reason":                  {nil, "", nil},
		"a first reason":             {nil, "INC-2", map[string]any{"annotations": map[string]any{v1alpha1.AnnotationModeReason: any("INC-2")}}},
		"another reason":             {said, "INC-2", map[string]any{"annotations": map[string]any{v1alpha1.AnnotationModeReason: any("INC-2")}}},
		"no reason after an earlier": {said, "", map[string]any{"annotations": map[string]any{v1alpha1.AnnotationModeReason: any(nil)}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: tc.before}}
			as, err := SelectPrincipal(p, v1alpha1.PolicyModeHalted, authenticationv1.UserInfo{Username: "alice"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, modePatch(p, v1alpha1.PolicyModeHalted, as, tc.reason)["metadata"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each object is asked for once, in the order in which the caller named them, and with the state that was seen.
func TestRequestsDivideObjectsByNamespaceAndByTens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 60).Draw(t, "namespaces")
		var drifted []*v1alpha1.Baseline
		want, count := map[string][]v1alpha1.RequestedTarget{}, map[string]int{}
		for i, namespace := range namespaces {
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i)}}
			b.Status.Observed.Hash = fmt.Sprintf("h%d", i)
			drifted = append(drifted, b)
			want[namespace] = append(want[namespace], v1alpha1.RequestedTarget{BaselineName: b.Name, DriftedHash: b.Status.Observed.Hash})
		}
		got := map[string][]v1alpha1.RequestedTarget{}
		for _, r := range NewRemediationRequests("p", authenticationv1.UserInfo{Username: "alice"}, "INC-9", drifted) {
			if len(r.Spec.Targets) == 0 || len(r.Spec.Targets) > MaxRequested || r.Spec.PolicyName != "p" || r.Spec.RequestedBy != "alice" || r.Spec.Reason != "INC-9" {
				t.Fatalf("the request is %+v", r.Spec)
			}
			got[r.Namespace] = append(got[r.Namespace], r.Spec.Targets...)
			count[r.Namespace]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for namespace, requests := range count {
			if fewest := (len(want[namespace]) + MaxRequested - 1) / MaxRequested; requests != fewest {
				t.Fatalf("%s has %d requests for %d objects", namespace, requests, len(want[namespace]))
			}
		}
	})
}

func TestAnErrorAboutTheStateOfAnObjectIsARefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a plan that has ended":       {&PlanRefusedError{Reason: PlanHasEnded}, true},
		"a plan of another user":      {&PlanSupersededError{}, true},
		"a release without a run":     {&ReleaseRefusedError{Reason: ReleaseHasNoRun}, true},
		"a state that has changed":    {&StateChangedError{}, true},
		"an object that was replaced": {&ReplacedError{}, true},
		"an object of many writers":   {&ContendedError{}, true},
		"a quarantine that changed":   {&QuarantineChangedError{}, true},
		"a policy that has changed":   {fmt.Errorf("setting the mode: %w", ErrPolicyChanged), true},
		"a refusal of a policy":       {&RefusalError{Message: "no"}, true},
		"groups of another user":      {&NotMemberError{}, false},
		"any other error":             {errors.New("no"), false},
	} {
		if got := IsRefusal(tc.err); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestAPlanOutcomeTellsWhyTheVerbWasNotCarriedOut(t *testing.T) {
	for outcome, want := range map[PlanOutcome]string{
		{Progress: Refused, Reason: PlanWasDeleted}:                                                                               "the plan was deleted meanwhile",
		{Progress: Refused, Reason: PlanEndedBefore, Phase: v1alpha1.PlanFailed}:                                                  "the plan ended as Failed before",
		{Progress: Refused, Reason: PlanSuperseded, Control: v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "bob"}}: `bob has asked for "Cancel" since the plan was shown`,
		{Progress: Taken, Reason: PlanRuns}:                                                                                       "",
	} {
		if got := outcome.Refusal(); got != want {
			t.Errorf("%s is told as %q, want %q", outcome.Reason, got, want)
		}
	}
}
