// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// GetPolicy reads a policy.
func GetPolicy(ctx context.Context, c *invocation.Cluster, name string) (*v1alpha1.RemediationPolicy, error) {
	policy := &v1alpha1.RemediationPolicy{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, policy); err != nil {
		return nil, err
	}
	return policy, nil
}
