// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// The users of the tests.
const (
	ci       = guarded.CI
	mallory  = remediation.Mallory
	platform = remediation.Platform
)

// world is one whose policies see the drift themselves.
type world struct {
	*remediation.World
	t           testing.TB
	environment string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := remediation.NewWorld(t, cluster, auditLog)
	return &world{w, t, w.Name}
}

// within is the world in a test within the test.
func (w *world) within(t testing.TB) *world { return &world{w.Within(t), t, w.environment} }

// everything has a policy select all objects of its Environment, and look at each for
// a while before it counts as healthy.
func everything(s *v1alpha1.RemediationPolicySpec) {
	s.Selector = nil
	s.Health = v1alpha1.RemediationHealth{
		Stabilization: &metav1.Duration{Duration: time.Second}, Timeout: &metav1.Duration{Duration: 10 * time.Second},
	}
}

// selectsNothing has a policy select no object by itself, for tests in which no other
// object ever becomes healthy.
func selectsNothing(s *v1alpha1.RemediationPolicySpec) {
	s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"planned-by": "hand"}}
}

// policy makes an active policy of the world's Environment.
func (w *world) policy(changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	return w.policyBy(platform, w.Name, changes...)
}

// policyBy is policy by somebody, under a name of its own.
func (w *world) policyBy(author, name string, changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	return w.PolicyBy(author, name, append([]func(*v1alpha1.RemediationPolicySpec){everything}, changes...)...)
}

// plan makes a plan that puts these Deployments back, one after the other, as the
// assessor would. Besides names it takes changes of its targets, and of itself.
func (w *world) plan(policy *v1alpha1.RemediationPolicy, of ...any) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.planOf(policy, of...)
	w.Store(p)
	return p
}

// planOf is such a plan before it is stored.
func (w *world) planOf(policy *v1alpha1.RemediationPolicy, of ...any) *v1alpha1.RemediationPlan {
	w.t.Helper()
	var names []string
	var changes []func(*v1alpha1.PlannedRemediation)
	for _, o := range of {
		switch x := o.(type) {
		case string:
			names = append(names, x)
		case func(*v1alpha1.PlanTarget):
			changes = append(changes, func(p *v1alpha1.PlannedRemediation) {
				for i := range p.Targets {
					x(&p.Targets[i])
				}
			})
		case func(*v1alpha1.PlannedRemediation):
			changes = append(changes, x)
		default:
			w.t.Fatalf("a plan of %T", o)
		}
	}
	p := w.PlanOf(policy, names...)
	for _, change := range changes {
		change(&p.Spec.Plan)
	}
	return p
}

// proven checks that the records of plans are whole, and are the writes that the API
// server's audit log has of the executor.
func (w *world) proven(records evidenceStore, plans ...*v1alpha1.RemediationPlan) {
	w.t.Helper()
	for _, wrong := range w.Unproven(records.records(), plans...) {
		w.t.Error(wrong)
	}
}
