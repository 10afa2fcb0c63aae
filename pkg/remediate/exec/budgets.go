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

// A look reads at most four pages of PodDisruptionBudgets. A tenant may write any number of
// them, and each look of a plan reads them again.
const (
	budgetsPerPage = 500
	maxBudgetPages = 4
)

// budgets are the PodDisruptionBudgets of the namespace of a plan.
type budgets struct {
	// exhausted are those that allow no disruption.
	exhausted []policyv1.PodDisruptionBudget
	// cut says that the namespace has more budgets than a look reads.
	cut bool
}

// readBudgets reads the PodDisruptionBudgets of the namespace that allow no disruption now, if a
// target of the plan asks for them.
func (r *run) readBudgets(ctx context.Context) (found budgets, err error) {
	targets := r.plan.Spec.Plan.Targets
	if !slices.ContainsFunc(targets, func(t v1alpha1.PlanTarget) bool { return disruption.ChangesTemplate(&t) }) {
		return budgets{}, nil
	}
	next := ""
	for range maxBudgetPages {
		page := &policyv1.PodDisruptionBudgetList{}
		err := r.Client.List(ctx, page, client.InNamespace(r.plan.Namespace), client.Limit(budgetsPerPage), client.Continue(next))
		if err != nil {
			return budgets{}, fmt.Errorf("listing the PodDisruptionBudgets of %s: %w", r.plan.Namespace, err)
		}
		found.exhausted = append(found.exhausted, disruption.Exhausted(page.Items)...)
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
	found.cut = true
	return found, nil
}

// protected says why the write of a step would remove ready pods that a budget protects; empty
// when it would not. A target that is not ready is put back: its drift may be why the budget
// allows no disruption. A budget that was not read may protect the pods.
func (r *run) protected(step int32, ready protocol.Answer) string {
	target := r.target(step)
	if !r.budgets.cut && len(r.budgets.exhausted) == 0 || ready != protocol.Yes || !disruption.ChangesTemplate(target) {
		return ""
	}
	kind := gvkOf(target)
	pods, removes, err := disruption.Replaced(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, r.material(step).raw)
	if err != nil || !removes {
		return "" // the dry run tells what the API server does not take
	}
	name := disruption.Protecting(r.budgets.exhausted, pods, target.FirstSeenTime.Time)
	switch {
	case name != "":
		return fmt.Sprintf("PodDisruptionBudget %s allows no disruption now, and the repair of %s removes ready pods", name, target.Name)
	case r.budgets.cut:
		return fmt.Sprintf("namespace %s has more than %d PodDisruptionBudgets, so not all are read, and the repair of %s removes ready pods",
			r.plan.Namespace, budgetsPerPage*maxBudgetPages, target.Name)
	}
	return ""
}
