// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// accountPrefix begins the user name of each ServiceAccount.
const accountPrefix = "system:serviceaccount:"

// Principal is a user in whose name a plan acts, with the groups that count.
type Principal struct {
	// User is the name by which the API server knows the user; empty for no user.
	User string
	// Groups of the user that the API server has confirmed; none for a ServiceAccount.
	Groups []string
}

// PrincipalOf returns the user with whose rights a policy acts: its ServiceAccount, or its
// author.
func PrincipalOf(policy *v1alpha1.RemediationPolicySpec) Principal {
	if policy.ServiceAccountName != "" {
		return Principal{User: accountPrefix + strings.Replace(policy.ServiceAccountName, "/", ":", 1)}
	}
	return Principal{policy.RequestedBy, policy.RequestedByGroups}
}

// Account returns the ServiceAccount that the user is, and whether the user is one.
func (p Principal) Account() (types.NamespacedName, bool) {
	account, ok := strings.CutPrefix(p.User, accountPrefix)
	if !ok {
		return types.NamespacedName{}, false
	}
	namespace, name, ok := strings.Cut(account, ":")
	if !ok {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}
