// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// repairsUser is the user name of the ServiceAccount shop/repairs.
const repairsUser = "system:serviceaccount:shop:repairs"

// actsAsRepairs has a policy act as the ServiceAccount shop/repairs.
func actsAsRepairs(p *v1alpha1.RemediationPolicy) {
	p.Spec.RequestedBy, p.Spec.RequestedByGroups, p.Spec.ServiceAccountName = "", nil, "shop/repairs"
}

// RoleBindings name accounts, so a review of access allows what an account could do that
// was deleted.
func TestAStepNeedsTheServiceAccountItself(t *testing.T) {
	const gone = "the ServiceAccount shop/repairs, which the plan acts as, does not exist"
	account := func(change func(*corev1.ServiceAccount)) func(*world) {
		return func(w *world) {
			a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repairs"}}
			change(a)
			if err := w.Client.Create(w.Context(), a); err != nil {
				w.Fatal(err)
			}
			if a.Finalizers != nil {
				if err := w.Client.Delete(w.Context(), a); err != nil {
					w.Fatal(err)
				}
			}
		}
	}
	there := account(func(*corev1.ServiceAccount) {})
	tests := map[string]struct {
		world  func(*world)
		want   protocol.Answer
		denied string
	}{
		"it exists":            {there, protocol.Yes, ""},
		"it does not exist":    {func(*world) {}, protocol.No, gone},
		"it is being deleted":  {account(func(a *corev1.ServiceAccount) { a.Finalizers = []string{"example.com/keep"} }), protocol.No, gone},
		"it exists elsewhere":  {account(func(a *corev1.ServiceAccount) { a.Namespace = "web" }), protocol.No, gone},
		"another exists there": {account(func(a *corev1.ServiceAccount) { a.Name = "repairs2" }), protocol.No, gone},
		"it cannot be read":    {func(w *world) { there(w); w.failing("get *v1.PartialObjectMetadata", errNetwork) }, protocol.Unknown, ""},
		"it exists, and may not write": {
			func(w *world) { there(w); w.deny[repairsUser+" update deployments"] = true }, protocol.No, repairsUser + ", the user of the plan, may not update it",
		},
		"it answers for the policy, and a person for the request": {
			asksForIt, protocol.No, gone,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.plan.Spec.Plan.Requester, w.plan.Spec.Plan.RequesterGroups = repairsUser, nil
			actsAsRepairs(w.policy)
			test.world(w)
			r := &run{Executor: w.Executor, plan: w.plan, policy: w.policy}
			if got, denied := r.authorize(t.Context(), 0); got != test.want || denied != test.denied {
				t.Errorf("got %v %q, want %v %q", got, denied, test.want, test.denied)
			}
		})
	}
}

// The digest is that of the policy, so the plan was made by it as it is now.
func TestAPlanActsAsTheServiceAccountOfItsPolicy(t *testing.T) {
	tests := map[string]struct {
		plan   func(*v1alpha1.PlannedRemediation)
		halted string
	}{
		"as the account":               {func(p *v1alpha1.PlannedRemediation) { p.Requester, p.RequesterGroups = repairsUser, nil }, ""},
		"as the author of before":      {func(*v1alpha1.PlannedRemediation) {}, "it acts with other permissions than its policy has"},
		"as the account, with a group": {func(p *v1alpha1.PlannedRemediation) { p.Requester = repairsUser }, "it acts with other permissions than its policy has"},
		"as that account of another place": {func(p *v1alpha1.PlannedRemediation) {
			p.Requester, p.RequesterGroups = "system:serviceaccount:web:repairs", nil
		}, "it acts with other permissions than its policy has"},
		"as a user with the account's value": {func(p *v1alpha1.PlannedRemediation) { p.Requester, p.RequesterGroups = "shop/repairs", nil }, "it acts with other permissions than its policy has"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			actsAsRepairs(w.policy)
			w.changePolicy(actsAsRepairs)
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
				p.Spec.Plan.Policy.Digest = planner.Digest(&w.policy.Spec)
				test.plan(&p.Spec.Plan)
			})
			if got := w.open().look(t.Context()); got.Halted != test.halted || !got.Known {
				t.Errorf("halted: %q, want %q: %+v", got.Halted, test.halted, got)
			}
		})
	}
}

// The spec does not say who made such a policy less than active.
func TestAPolicyOfAServiceAccountIsHaltedByNoUser(t *testing.T) {
	for _, mode := range []v1alpha1.PolicyMode{v1alpha1.PolicyModeHalted, v1alpha1.PolicyModeObserveOnly} {
		w := newWorld(t)
		actsAsRepairs(w.policy)
		w.policy.Spec.Mode = mode
		if why, by := haltedBy(w.policy); why == "" || by != "" {
			t.Errorf("%s: halted because %q, by %q", mode, why, by)
		}
	}
}
