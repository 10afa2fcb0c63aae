// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// What one object should be is nothing that another one may be made.
func TestABaselineOfAnotherObjectIsNoneOfTheTarget(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web", "api")
	web, err := w.Baseline("web")
	w.Must(err)
	plan := w.plan(w.policy(), "api", func(p *v1alpha1.PlanTarget) {
		p.BaselineName, p.Revision = web.Name, web.Spec.Authorized.Revision
		p.RevisionHash, p.DesiredHash = web.Spec.Authorized.Hash, web.Spec.Authorized.Hash
	})
	before := w.generation("api")
	startExecutor(t, newEvidence(t))
	plan = w.Ended(plan)
	if got := plan.Status.Steps[0].Reason; got != v1alpha1.ReasonTargetMoved || w.generation("api") != before {
		t.Errorf("the plan is %s; generation %d became %d", remediation.Describe(plan), before, w.generation("api"))
	}
}

// planPolicy is the chart's policy about what may be a target.
const planPolicy = "plumbline-plan-writers"

// What the API server should have refused, and did not because its policy was away,
// is not carried out either.
func TestKindsThatAreNeverWrittenAreNotWhateverIsStored(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.Drifted("web")
	policy := w.policy()
	w.withoutPolicy(planPolicy)
	startExecutor(t, newEvidence(t))
	for _, of := range []struct{ apiVersion, kind, name string }{
		{"v1", "Secret", "token"}, {"rbac.authorization.k8s.io/v1", "Role", "any"},
		{"plumbline.dev/v1alpha1", "SpecGuard", "workloads"}, {"plumbline.dev/v1alpha1", "Baseline", "deployments.apps.web"},
	} {
		t.Run("a "+of.kind, func(t *testing.T) {
			w := w.within(t)
			var plan *v1alpha1.RemediationPlan
			w.Eventually("the plan is stored", func() error {
				plan = w.planOf(policy, "web", func(p *v1alpha1.PlanTarget) { p.APIVersion, p.Kind, p.Name = of.apiVersion, of.kind, of.name })
				return admin.Create(t.Context(), plan)
			})
			plan = w.Ended(plan)
			if step := plan.Status.Steps[0]; step.Reason != v1alpha1.ReasonNotAllowed || step.Message != "a "+of.kind+" is never written" {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
		})
	}
}

// withoutPolicy unbinds a policy of the chart, until the test ends.
func (w *world) withoutPolicy(name string) {
	w.t.Helper()
	bound := &admissionv1.ValidatingAdmissionPolicyBinding{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Name: name}, bound))
	w.Must(admin.Delete(w.t.Context(), bound.DeepCopy()))
	w.t.Cleanup(func() {
		bound.ResourceVersion, bound.UID = "", ""
		if err := admin.Create(context.WithoutCancel(w.t.Context()), bound); err != nil {
			w.t.Errorf("binding %s again: %v", name, err)
		}
	})
}

// A revision whose body is not what its hash says is never applied, and neither is one
// that holds no body at all.
func TestARevisionThatIsNotWhatItWasIsNotApplied(t *testing.T) {
	evil := kube.Compress([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":0}}`))
	for name, body := range map[string][]byte{"another body": evil, "no body": []byte("nothing that could be read")} {
		t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			assessor := startAssessor(t)
			w := newWorld(t)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			plan := w.plan(w.policy(), "web")
			assessor.Halt(t) // it would notice
			w.spoil(plan.Spec.Plan.Targets[0].Revision, body)
			before := w.generation("web")
			records := newEvidence(t)
			startExecutor(t, records)
			plan = w.Ended(plan)
			if got := plan.Status.Steps[0].Reason; got != v1alpha1.ReasonRevisionDamaged || w.generation("web") != before {
				t.Errorf("the plan is %s; generation %d became %d", remediation.Describe(plan), before, w.generation("web"))
			}
			w.settled(0)
			w.proven(records, plan)
		})
	}
}

// spoil has a revision hold another body, as a restored backup or whoever can write
// etcd may.
func (w *world) spoil(name string, body []byte) {
	w.t.Helper()
	r := &v1alpha1.BaselineRevision{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.Name, Name: name}, r))
	assessor, err := client.New(as(remediation.AssessorUser), client.Options{Scheme: admin.Scheme()})
	w.Must(err)
	w.Must(assessor.Delete(w.t.Context(), r.DeepCopy()))
	r.ResourceVersion, r.UID = "", ""
	r.Spec.Body = body
	w.Must(assessor.Create(w.t.Context(), r))
}

// A right that its author loses while the plan is under way is missed at the next step.
func TestARightThatIsLostIsMissedAtTheNextStep(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // the first step goes on until there are rollouts
	w.Drifted("web", "api")
	author := "author-of-" + w.Name
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "author"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "update"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "author"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: author}},
	}
	w.Must(admin.Create(t.Context(), role))
	w.Must(admin.Create(t.Context(), binding))
	w.mayUpdate(author, true)
	policy := w.policyBy(author, w.Name, slowly, selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.RequestedBy, s.RequestedByGroups = author, nil })
	plan := w.plan(policy, "web", "api")
	records := newEvidence(t)
	startExecutor(t, records)
	w.UntilPlan(plan, "the first has written", hasWritten)
	w.Must(admin.Delete(t.Context(), binding))
	w.mayUpdate(author, false)
	w.Rollouts()
	plan = w.Ended(plan)
	first, second := plan.Status.Steps[0], plan.Status.Steps[1]
	if first.State != v1alpha1.StepVerified || second.Reason != v1alpha1.ReasonNotAllowed || !strings.Contains(second.Message, author) {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	if imageOf(w.Live("api")) == guarded.Image {
		t.Error("the second target was written all the same")
	}
	w.proven(records, plan)
}

// mayUpdate waits until the API server says so, or not, of a user and the world's
// Deployments.
func (w *world) mayUpdate(user string, want bool) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("that %s may write is %t", user, want), func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.Name, Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", Name: "api"},
		}}
		if err := admin.Create(w.t.Context(), review); err != nil {
			return err
		}
		if review.Status.Allowed != want {
			return fmt.Errorf("it is %t", review.Status.Allowed)
		}
		return nil
	})
}

// Two policies want the same object put back: each makes a plan, and the first that has a
// place in the ledgers keeps the other from the object.
func TestTwoPoliciesOnOneTarget(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // nothing rolls out: the first plan keeps its place
	w.Drifted("web")
	w.policy(slowly, busyWriters)
	w.policyBy(platform, w.Name+"-too", slowly, busyWriters)
	var plans []v1alpha1.RemediationPlan
	w.Eventually("each policy has a plan", func() error {
		if plans = w.plans(); len(plans) != 2 {
			return fmt.Errorf("there are %d", len(plans))
		}
		return nil
	})
	records := newEvidence(t)
	startExecutor(t, records)
	w.Eventually("one has written, and the other waits for the target", func() error {
		wrote, waits, seen := 0, 0, ""
		for _, p := range w.plans() {
			switch {
			case hasWritten(&p):
				wrote++
			case strings.Contains(p.Status.DeferralReason, "writes this target"):
				waits++
			}
			seen += "; " + remediation.Describe(&p)
		}
		if wrote != 1 || waits != 1 {
			return fmt.Errorf("%d have written, %d wait%s", wrote, waits, seen)
		}
		return nil
	})
	w.Rollouts()
	w.Eventually("both have ended", func() error {
		plans = w.plans()
		for i := range plans {
			if plans[i].Status.CompletionTime == nil {
				return fmt.Errorf("%s is %s", plans[i].Name, remediation.Describe(&plans[i]))
			}
		}
		return nil
	})
	if n := len(w.Writes().Writes); n != 1 || imageOf(w.Live("web")) != guarded.Image {
		t.Errorf("it was written %d times, and runs %s", n, imageOf(w.Live("web")))
	}
	var all []*v1alpha1.RemediationPlan
	for i := range plans {
		all = append(all, &plans[i])
	}
	w.proven(records, all...)
}
