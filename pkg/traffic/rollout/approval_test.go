// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestWhichUsersDecideInPlaceOfTheJudge(t *testing.T) {
	const notAuthor, anyone = v1alpha1.ApprovalNotAuthor, v1alpha1.ApprovalAnyone
	approve := v1alpha1.RolloutControl{Verb: "Approve", RequestedBy: "ada"}
	verb := func(verb v1alpha1.RolloutVerb, variation v1alpha1.VariationName) v1alpha1.RolloutControl {
		return v1alpha1.RolloutControl{Verb: verb, Variation: variation, RequestedBy: "ada"}
	}
	const (
		author  = "ada is the author of run 3"
		writer  = "ada has written the release last"
		unknown = "run 3 has no author"
	)
	type says struct {
		policy v1alpha1.ApprovalPolicy
		user   string
	}
	tests := map[string]struct {
		run, spec says
		asks      v1alpha1.RolloutControl
		refusal   string // a part of it
		approver  string
	}{
		"the author approves":                                        {says{notAuthor, "ada"}, says{notAuthor, "ada"}, approve, author, "another user than ada"},
		"the author has a name in another case":                      {says{notAuthor, "ADA"}, says{notAuthor, "ADA"}, approve, author, "another user than ADA"},
		"the author skips":                                           {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Skip", ""), author, "another user than ada"},
		"the author promotes the canary":                             {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Promote", "canary"), author, "another user than ada"},
		"the author promotes what is no variation":                   {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Promote", ""), author, "another user than ada"},
		"the author asks for a verb of a later version":              {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Later", ""), author, "another user than ada"},
		"the author promotes the active variation":                   {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Promote", "stable"), "", "another user than ada"},
		"the author rolls back":                                      {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Rollback", ""), "", "another user than ada"},
		"the author starts the run":                                  {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Start", ""), "", "another user than ada"},
		"the author goes on":                                         {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Advance", ""), "", "another user than ada"},
		"the author tries again":                                     {says{notAuthor, "ada"}, says{notAuthor, "ada"}, verb("Retry", ""), "", "another user than ada"},
		"the author approves, and another user has changed the spec": {says{notAuthor, "ada"}, says{notAuthor, "bob"}, approve, author, "another user than ada or bob"},
		"the last writer approves":                                   {says{notAuthor, "bob"}, says{notAuthor, "ada"}, approve, writer, "another user than bob or ada"},
		"the last writer has lowered the policy":                     {says{notAuthor, "bob"}, says{anyone, "ada"}, approve, writer, "another user than bob or ada"},
		"the author has lowered the policy":                          {says{notAuthor, "ada"}, says{anyone, "ada"}, approve, author, "another user than ada"},
		"the author has taken the name away":                         {says{notAuthor, "ada"}, says{anyone, ""}, approve, author, "another user than ada"},
		"the policy was raised since the run began":                  {says{anyone, "ada"}, says{notAuthor, "bob"}, approve, author, "another user than ada or bob"},
		"the policy was raised over a run without an author":         {says{anyone, ""}, says{notAuthor, "bob"}, approve, unknown, ""},
		"a run of an earlier version has no policy and no author":    {says{"", ""}, says{notAuthor, "bob"}, approve, unknown, ""},
		"another user approves":                                      {says{notAuthor, "bob"}, says{notAuthor, "carol"}, approve, "", "another user than bob or carol"},
		"the policy is Anyone":                                       {says{anyone, "ada"}, says{anyone, "ada"}, approve, "", ""},
		"the policy is not set":                                      {says{"", "ada"}, says{"", "ada"}, approve, "", ""},
		"the policy is one of a later version":                       {says{anyone, "ada"}, says{"Later", "ada"}, approve, author, "another user than ada"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Spec.Rollout = &v1alpha1.Rollout{Approval: tc.spec.policy, RequestedBy: tc.spec.user}
			r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{
				Number: 3, State: "Running", Approval: tc.run.policy, Author: tc.run.user,
				From: v1alpha1.VariationRevision{Variation: "stable"}, To: v1alpha1.VariationRevision{Variation: "canary"},
			}}
			if got := rollout.RefuseVerb(r, &tc.asks); (got == "") != (tc.refusal == "") || !strings.Contains(got, tc.refusal) {
				t.Errorf("refused as %q, want %q", got, tc.refusal)
			}
			if got := rollout.Approver(r); got != tc.approver {
				t.Errorf("the approver is %q, want %q", got, tc.approver)
			}
		})
	}
	for name, r := range map[string]*v1alpha1.ABRelease{
		"no rollout": {}, "no status": {Spec: v1alpha1.ABReleaseSpec{Rollout: &v1alpha1.Rollout{Approval: notAuthor, RequestedBy: "ada"}}},
	} {
		if refusal, by := rollout.RefuseVerb(r, &approve), rollout.Approver(r); refusal != "" || by != "" {
			t.Errorf("%s: %q, %q", name, refusal, by)
		}
	}
}
