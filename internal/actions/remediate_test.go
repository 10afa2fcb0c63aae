// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestRefuseRemediation(t *testing.T) {
	for name, tc := range map[string]struct {
		baseline *v1alpha1.Baseline
		want     RemediationRefusalReason
	}{
		"a drifted object":                                   {baselineOf(drifted(found("/spec/replicas", "alice", 0))), ""},
		"a missing one":                                      {baselineOf(missing), ""},
		"one that is in sync":                                {baselineOf(), RemediationInSync},
		"one whose state is unknown":                         {baselineOf(state(v1alpha1.StateUnknown)), RemediationUnknown},
		"one in a state of a later version":                  {baselineOf(state("Wobbly")), RemediationUnknown},
		"one that no guard selects":                          {baselineOf(state(v1alpha1.StateNotGuarded)), RemediationUnguarded},
		"one that was made again since its Baseline retired": {baselineOf(retired, drifted(found("/spec/replicas", "alice", 0))), RemediationRetired},
		"a retired one":                                      {baselineOf(missing, retired), RemediationRetired},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RefuseRemediation(tc.baseline); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestARequestNamesTheUserAndTheGroupsThatAPolicyMayName(t *testing.T) {
	user := authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre", "system:authenticated"}}
	targets := []v1alpha1.RequestedTarget{{BaselineName: "deployments.apps.web", DriftedHash: "pl1:sha256:drifted"}}
	got := NewRemediationRequest("shop", "production", user, "INC-9", targets)
	want := v1alpha1.RemediationRequestSpec{
		PolicyName: "production", RequestedBy: "alice", RequestedByGroups: []string{"sre"}, Reason: "INC-9", Targets: targets,
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Namespace != "shop" || got.Name != "" {
		t.Errorf("%s/%s (-want +got):\n%s", got.Namespace, got.Name, diff)
	}
}

func TestJudgeRemediationRequest(t *testing.T) {
	answered := &v1alpha1.RemediationRequest{Status: v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused}}
	if JudgeRemediationRequest(answered, false) != Taken || JudgeRemediationRequest(&v1alpha1.RemediationRequest{}, false) != Pending || JudgeRemediationRequest(answered, true) != Refused {
		t.Error("an answer is that of a request that is gone, or of one without an answer")
	}
}
