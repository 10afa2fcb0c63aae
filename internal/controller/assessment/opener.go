// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// Opener begins the assessment of each step that has ended.
type Opener struct {
	// Client reads plans, policies and assessments from the cache, and creates assessments.
	Client client.Client
}

// Reconcile begins what is missing of one plan.
func (o *Opener) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	plan := &v1alpha1.RemediationPlan{}
	if err := o.Client.Get(ctx, request.NamespacedName, plan); err != nil || plan.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var failed []error
	for i := range plan.Status.Steps {
		if step := &plan.Status.Steps[i]; hasEnded(step.State) && int(step.Index) < len(plan.Spec.Plan.Targets) {
			failed = append(failed, o.begin(ctx, plan, step))
		}
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// begin creates the assessment of a step, unless there is one.
func (o *Opener) begin(ctx context.Context, plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) error {
	key := types.NamespacedName{Namespace: plan.Namespace, Name: effect.NameOf(plan.Name, step.Index)}
	err := o.Client.Get(ctx, key, &v1alpha1.EffectivenessAssessment{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	spec, err := o.policy(ctx, plan)
	if err != nil {
		return err
	}
	a := &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{planner.LabelPolicy: planner.PolicyLabel(plan.Spec.Plan.Policy.Name)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPlan", Name: plan.Name, UID: plan.UID, Controller: new(true),
			}},
		},
		Spec: specOf(plan, spec, step),
	}
	return createAssessment(ctx, o.Client, a)
}

// createAssessment creates an assessment, unless it is there.
func createAssessment(ctx context.Context, c client.Client, a *v1alpha1.EffectivenessAssessment) error {
	err := c.Create(ctx, a, client.FieldOwner(FieldManager))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // the cache does not have it yet
		return nil
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil // and with it goes its owner
	}
	return fmt.Errorf("creating assessment %s/%s: %w", a.Namespace, a.Name, err)
}

// policy returns the policy of a plan; nil if it is gone, or another one has its name.
func (o *Opener) policy(ctx context.Context, plan *v1alpha1.RemediationPlan) (*v1alpha1.RemediationPolicySpec, error) {
	of, found := &plan.Spec.Plan.Policy, &v1alpha1.RemediationPolicy{}
	err := o.Client.Get(ctx, types.NamespacedName{Name: of.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is an answer
	case err != nil:
		return nil, fmt.Errorf("reading policy %s: %w", of.Name, err)
	case string(found.UID) != of.UID:
		return nil, nil //nolint:nilnil // as above
	}
	return &found.Spec, nil
}
