// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	executorUser = "system:serviceaccount:" + own + ":" + ExecutorName
	publicKey    = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"
)

// healthyRemediation is one active policy of an Environment of the namespace shop,
// and nothing that waits.
func healthyRemediation() Remediation {
	return Remediation{
		Policies:     Got([]v1alpha1.RemediationPolicy{remediationPolicy("images", "production")}),
		Environments: Got([]Environment{{Name: "production", Namespaces: []string{"shop"}, Ledger: "uid-of-production"}}),
		Ledgers:      Got([]v1alpha1.RemediationLedger{newLedger("production"), newLedger(ClusterLedger)}),
		Plans:        Got(Plans{Unfinished: 2}),
		Lease:        Got(Lease{Holder: "executor-a", Renewed: testNow.Add(-2 * time.Second), Duration: 15 * time.Second}),
		PublicKeys:   Got(publicKey),
		Unanswered:   Got([]Unanswered{}),
	}
}

func remediationPolicy(name, environment string) v1alpha1.RemediationPolicy {
	return v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: environment, Mode: v1alpha1.PolicyModeActive, RequestedBy: "alice",
			Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
			Safety: v1alpha1.RemediationSafety{CircuitBreaker: v1alpha1.CircuitBreakerSettings{
				FailureThreshold: 3, OpenDuration: &metav1.Duration{Duration: time.Hour},
			}},
		},
	}
}

func newLedger(name string) v1alpha1.RemediationLedger {
	return v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name, UID: types.UID("uid-of-" + name)},
		Status:     v1alpha1.RemediationLedgerStatus{Sequence: 1},
	}
}

// rulesOf are grants as a role has them.
func rulesOf(grants []grant) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, g := range grants {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: g.resources, Verbs: g.verbs, ResourceNames: g.names})
	}
	return out
}

// giveExecutor gives the executor the rights that it needs, in the namespace shop.
func giveExecutor(s *Snapshot) {
	r := &s.Roles.Value
	r.ClusterRoles[ExecutorName] = rulesOf(executorEverywhere)
	r.ClusterRoles[executorTargets] = rulesOf(s.executorTargetGrants())
	r.Roles = map[string][]rbacv1.PolicyRule{own + "/" + ExecutorName: rulesOf(executorAtHome)}
	subjects := []rbacv1.Subject{account(own, ExecutorName)}
	role := func(kind, name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: kind, Name: name} }
	r.ClusterBindings = append(r.ClusterBindings, RoleBinding{Role: role("ClusterRole", ExecutorName), Subjects: subjects})
	r.Bindings = append(r.Bindings,
		RoleBinding{Namespace: own, Role: role("Role", ExecutorName), Subjects: subjects},
		RoleBinding{Namespace: "shop", Role: role("ClusterRole", executorTargets), Subjects: subjects})
}
