// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// ListPlans reads the plans that options select.
func ListPlans(ctx context.Context, c *invocation.Cluster, options ...client.ListOption) ([]v1alpha1.RemediationPlan, error) {
	list := &v1alpha1.RemediationPlanList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// GetPlan reads a plan of the namespace in which the user works.
func GetPlan(ctx context.Context, c *invocation.Cluster, name string) (*v1alpha1.RemediationPlan, error) {
	plan := &v1alpha1.RemediationPlan{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, plan); err != nil {
		return nil, err
	}
	return plan, nil
}

// PhaseOf returns the phase of a plan; one that no executor has looked at yet is created.
func PhaseOf(p *v1alpha1.RemediationPlan) v1alpha1.PlanPhase {
	return cmp.Or(p.Status.Phase, v1alpha1.PlanCreated)
}

// DescribePhase gives the phase of a plan; for a plan that is being sealed, also its last phase.
func DescribePhase(p *v1alpha1.RemediationPlan) string {
	if p.Status.Phase == v1alpha1.PlanSealing && p.Status.EndingAs != "" {
		return fmt.Sprintf("%s (%s)", p.Status.Phase, p.Status.EndingAs)
	}
	return string(PhaseOf(p))
}

// HasEnded says whether no further step of a plan follows.
func HasEnded(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) }

// PlanName is namespace/name, as the results of all verbs begin.
func PlanName(p *v1alpha1.RemediationPlan) string { return p.Namespace + "/" + p.Name }

// SortPlans puts plans that have not ended first, and the newest first among these.
func SortPlans(plans []v1alpha1.RemediationPlan) {
	ended := func(p *v1alpha1.RemediationPlan) int {
		if HasEnded(p) {
			return 1
		}
		return 0
	}
	slices.SortFunc(plans, func(x, y v1alpha1.RemediationPlan) int {
		return cmp.Or(
			cmp.Compare(ended(&x), ended(&y)), y.CreationTimestamp.Compare(x.CreationTimestamp.Time),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}
