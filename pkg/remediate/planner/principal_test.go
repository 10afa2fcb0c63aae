// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestThePrincipalOfAPolicy(t *testing.T) {
	tests := map[string]struct {
		policy  v1alpha1.RemediationPolicySpec
		want    Principal
		account types.NamespacedName
	}{
		"a user with groups": {
			v1alpha1.RemediationPolicySpec{RequestedBy: "ann", RequestedByGroups: []string{"sre"}}, Principal{"ann", []string{"sre"}}, types.NamespacedName{},
		},
		"a service account": {
			v1alpha1.RemediationPolicySpec{ServiceAccountName: "shop/repairs"},
			Principal{User: "system:serviceaccount:shop:repairs"}, types.NamespacedName{Namespace: "shop", Name: "repairs"},
		},
		"a service account that named itself": {
			v1alpha1.RemediationPolicySpec{RequestedBy: "system:serviceaccount:shop:repairs"},
			Principal{User: "system:serviceaccount:shop:repairs"}, types.NamespacedName{Namespace: "shop", Name: "repairs"},
		},
		"a service account outweighs a user, whom the schema refuses beside it": {
			v1alpha1.RemediationPolicySpec{RequestedBy: "root", RequestedByGroups: []string{"system:masters"}, ServiceAccountName: "shop/repairs"},
			Principal{User: "system:serviceaccount:shop:repairs"}, types.NamespacedName{Namespace: "shop", Name: "repairs"},
		},
		"a user whose name only begins like an account's": {
			v1alpha1.RemediationPolicySpec{RequestedBy: "system:serviceaccount:shop"}, Principal{User: "system:serviceaccount:shop"}, types.NamespacedName{},
		},
		"no user": {v1alpha1.RemediationPolicySpec{}, Principal{}, types.NamespacedName{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := PrincipalOf(&test.policy)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("principal (-want +got):\n%s", diff)
			}
			if account, is := got.Account(); account != test.account || is != (test.account != types.NamespacedName{}) {
				t.Errorf("its account is %q: %t", account, is)
			}
		})
	}
}
