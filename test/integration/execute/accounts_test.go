// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// account is a ServiceAccount of a world that may update the Deployments there.
type account struct {
	object  *corev1.ServiceAccount
	binding *rbacv1.RoleBinding
	// user is the name by which the API server knows it.
	user string
}

// account makes one of the name repairs, and waits until it has its rights.
func (w *world) account() *account {
	w.t.Helper()
	of := metav1.ObjectMeta{Namespace: w.Name, Name: "repairs"}
	role := &rbacv1.Role{
		ObjectMeta: of,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"update"}}},
	}
	a := &account{
		object: &corev1.ServiceAccount{ObjectMeta: of},
		binding: &rbacv1.RoleBinding{
			ObjectMeta: of, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: of.Namespace, Name: of.Name}},
		},
		user: "system:serviceaccount:" + of.Namespace + ":" + of.Name,
	}
	w.Must(admin.Create(w.t.Context(), a.object))
	w.Must(admin.Create(w.t.Context(), role))
	w.Must(admin.Create(w.t.Context(), a.binding))
	w.mayUpdate(a.user, true)
	return a
}

// actsAs has a policy act as a ServiceAccount.
func actsAs(account string) func(*v1alpha1.RemediationPolicySpec) {
	return func(s *v1alpha1.RemediationPolicySpec) {
		s.RequestedBy, s.RequestedByGroups, s.ServiceAccountName = "", nil, account
	}
}

func TestAPolicyFromGitActsAsItsServiceAccount(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	as := w.account()
	records := newEvidence(t)
	startExecutor(t, records)
	w.policy(busyWriters, actsAs(w.Name+"/repairs"))
	plan := w.succeeded()
	if got := imageOf(w.Live("web")); got != guarded.Image {
		t.Errorf("it runs %s", got)
	}
	if planned := plan.Spec.Plan; planned.Requester != as.user || planned.RequesterGroups != nil {
		t.Errorf("the plan acts as %s in %q", planned.Requester, planned.RequesterGroups)
	}
	stored := records.records()
	named := map[string]int{}
	_, err := evidence.Verify(t.Context(), stored.Store, stored.Keys, evidence.Options{Each: func(s evidence.Sealed) {
		if s.Record.Plan != nil && s.Record.Plan.Name == plan.Name {
			named[s.Record.Requester]++
		}
	}})
	if err != nil || len(named) != 1 || named[as.user] == 0 {
		t.Errorf("records of the plan name %v, error %v", named, err)
	}
	w.settled(1)
	w.proven(records, plan)
}

// What the account may do is asked before each write.
func TestAServiceAccountThatIsNoLongerWhatItWasWritesNothingMore(t *testing.T) {
	startAssessor(t)
	records := newEvidence(t)
	startExecutor(t, records)
	tests := map[string]struct {
		loses func(*world, *account)
		why   func(*account) string
	}{
		"it loses its rights": {
			func(w *world, a *account) {
				w.Must(admin.Delete(w.t.Context(), a.binding))
				w.mayUpdate(a.user, false)
			},
			func(a *account) string { return a.user + ", the user of the plan, may not update it" },
		},
		// The RoleBinding stays, and names the account.
		"it is deleted": {
			func(w *world, a *account) { w.Must(admin.Delete(w.t.Context(), a.object)) },
			func(a *account) string {
				return "the ServiceAccount " + a.object.Namespace + "/repairs, which the plan acts as, does not exist"
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.UnderGuard() // the first step goes on until there are rollouts
			w.Drifted("web", "api")
			as := w.account()
			plan := w.plan(w.policy(slowly, selectsNothing, actsAs(w.Name+"/repairs")), "web", "api")
			w.UntilPlan(plan, "the first has written", hasWritten)
			test.loses(w, as)
			w.Rollouts()
			plan = w.Ended(plan)
			first, second := plan.Status.Steps[0], plan.Status.Steps[1]
			if first.State != v1alpha1.StepVerified || second.Reason != v1alpha1.ReasonNotAllowed || second.Message != test.why(as) {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
			if imageOf(w.Live("api")) == guarded.Image {
				t.Error("the second target was written all the same")
			}
			w.proven(records, plan)
		})
	}
}

// An account has its rights where its namespace gives them, and a name is not enough.
func TestAnAccountOfThatNameInAnotherNamespaceLendsNoRights(t *testing.T) {
	startAssessor(t)
	w, other := newWorld(t), newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.account()
	other.account()
	before := w.generation("web")
	plan := w.plan(w.policy(selectsNothing, actsAs(other.Name+"/repairs")), "web")
	startExecutor(t, newEvidence(t))
	plan = w.Ended(plan)
	if step := plan.Status.Steps[0]; step.Reason != v1alpha1.ReasonNotAllowed || !strings.Contains(step.Message, "system:serviceaccount:"+other.Name+":repairs") {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	if after := w.generation("web"); after != before {
		t.Errorf("generation %d became %d", before, after)
	}
}
