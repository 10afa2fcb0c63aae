// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/disruption"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// readBudgets reads the PodDisruptionBudgets of the namespace that allow no disruption now, if a
// target of the plan asks for them.
func (r *run) readBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	targets := r.plan.Spec.Plan.Targets
	if !slices.ContainsFunc(targets, func(t v1alpha1.PlanTarget) bool { return disruption.ChangesTemplate(&t) }) {
		return nil, nil
	}
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := r.Client.List(ctx, budgets, client.InNamespace(r.plan.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets of %s: %w", r.plan.Namespace, err)
	}
	return disruption.Exhausted(budgets.Items), nil
}

// protected says why the write of a step would remove ready pods that a budget protects; empty
// when it would not. A target that is not ready is put back: its drift may be why the budget
// allows no disruption.
func (r *run) protected(step int32, ready protocol.Answer) string {
	target := r.target(step)
	if len(r.budgets) == 0 || ready != protocol.Yes || !disruption.ChangesTemplate(target) {
		return ""
	}
	kind := gvkOf(target)
	pods, removes, err := disruption.Replaced(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, r.material(step).raw)
	if err != nil || !removes {
		return "" // the dry run tells what the API server does not take
	}
	name := disruption.Protecting(r.budgets, pods)
	if name == "" {
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s allows no disruption now, and the repair of %s removes ready pods", name, target.Name)
}
