// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func TestSelectGroups_KeepsTheBoundsOfTheSchema(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("team-%d", i)
	}
	user := func(groups ...string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: "alice", Groups: groups}
	}
	cases := map[string]struct {
		user   authenticationv1.UserInfo
		named  []string
		chosen bool
		want   []string
		fails  string
	}{
		"all of them":           {user: user("a", "b"), want: []string{"a", "b"}},
		"each once":             {user: user("a", "a"), want: []string{"a"}},
		"those named":           {user: user("a", "b"), named: []string{"b"}, chosen: true, want: []string{"b"}},
		"none":                  {user: user("a"), named: []string{""}, chosen: true},
		"as many as fit":        {user: user(many[:32]...), want: many[:32]},
		"more than fit":         {user: user(many...), fails: "you are in 40 groups, and a policy holds 32"},
		"some of many":          {user: user(many...), named: many[:2], chosen: true, want: many[:2]},
		"a name longer than is": {user: user(strings.Repeat("g", 257)), fails: "is longer than 256 bytes"},
		"somebody else's":       {user: user("a"), named: []string{"b"}, chosen: true, fails: `you (alice) are not in the group "b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SelectGroups(tc.user, tc.named, tc.chosen)
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) || !slices.Equal(got, tc.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAPolicyIsInAModeOnlyWithTheVeryRights(t *testing.T) {
	active := func(by string, groups ...string) v1alpha1.RemediationPolicySpec {
		return v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeActive, RequestedBy: by, RequestedByGroups: groups}
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.RemediationPolicySpec
		mode v1alpha1.PolicyMode
		want bool
	}{
		"active by the user, with these groups":  {active("alice", "sre"), v1alpha1.PolicyModeActive, true},
		"active by the user, with other groups":  {active("alice"), v1alpha1.PolicyModeActive, false},
		"active by another user":                 {active("bob", "sre"), v1alpha1.PolicyModeActive, false},
		"without a word it observes":             {v1alpha1.RemediationPolicySpec{}, v1alpha1.PolicyModeObserveOnly, true},
		"halted by another user is halted":       {v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeHalted, RequestedBy: "bob"}, v1alpha1.PolicyModeHalted, true},
		"an active one is not halted":            {active("alice", "sre"), v1alpha1.PolicyModeHalted, false},
		"a halted one does not observe any more": {v1alpha1.RemediationPolicySpec{Mode: v1alpha1.PolicyModeHalted}, v1alpha1.PolicyModeObserveOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsInMode(&v1alpha1.RemediationPolicy{Spec: tc.spec}, tc.mode, planner.Principal{User: "alice", Groups: []string{"sre"}}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestJudgeMode(t *testing.T) {
	for name, tc := range map[string]struct {
		observed int64
		deleted  bool
		want     Progress
	}{
		"an older generation was looked at": {observed: 3, want: Pending},
		"this one was":                      {observed: 4, want: Taken},
		"a later one was":                   {observed: 5, want: Taken},
		"it is gone":                        {observed: 4, deleted: true, want: Refused},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RemediationPolicy{Status: v1alpha1.RemediationPolicyStatus{ObservedGeneration: tc.observed}}
			if got := JudgeMode(p, 4, tc.deleted); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
