// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
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
