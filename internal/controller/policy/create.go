// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// create makes the plans of an active policy. What is under way is read live
// first, and everything decided anew with it: one operation is all unfinished
// plans, and a cache that does not know the last one would see its room twice.
func (r *Reconciler) create(ctx context.Context, s *subject) error {
	if !s.acts() || len(s.out.Plans) == 0 {
		return nil
	}
	live, err := r.livePlans(ctx, s.policy.Name)
	if err != nil {
		return err
	}
	if err := r.decide(ctx, s, live); err != nil {
		return err
	}
	return r.createPlans(ctx, s)
}

// livePlans reads the plans of a policy past the cache.
func (r *Reconciler) livePlans(ctx context.Context, policy string) ([]v1alpha1.RemediationPlan, error) {
	var live v1alpha1.RemediationPlanList
	if err := r.Live.List(ctx, &live, client.MatchingLabels{planner.LabelPolicy: planner.PolicyLabel(policy)}); err != nil {
		return nil, fmt.Errorf("listing the plans of policy %s: %w", policy, err)
	}
	return live.Items, nil
}

func (r *Reconciler) createPlans(ctx context.Context, s *subject) error {
	var failed []error
	for i := range s.out.Plans {
		failed = append(failed, r.createPlan(ctx, s, &s.out.Plans[i]))
	}
	return errors.Join(failed...)
}

func (r *Reconciler) createPlan(ctx context.Context, s *subject, p *planner.Plan) error {
	plan := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name,
			Labels: map[string]string{planner.LabelPolicy: planner.PolicyLabel(s.policy.Name)},
		},
		Spec: v1alpha1.RemediationPlanSpec{Plan: p.PlannedRemediation},
	}
	err := r.Client.Create(ctx, plan, client.FieldOwner(FieldManager))
	switch {
	case err == nil:
		s.created = append(s.created, plan)
		s.gathered.LastPlan = plan.Namespace + "/" + plan.Name
		return nil
	case apierrors.IsAlreadyExists(err):
		return nil // somebody was faster with the same plan
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil // and with it goes the drift
	}
	return fmt.Errorf("creating plan %s/%s: %w", plan.Namespace, plan.Name, err)
}
