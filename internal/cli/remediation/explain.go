// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// ExplainDrifts explains the drifts of a question with the permissions of the user, by the API server's time. The ledgers
// are in the namespace system, which is searched for when it is empty. A gate tells that its ledger cannot be found.
// With an error it returns the policies before the one that could not be gathered.
func ExplainDrifts(ctx context.Context, inv *invocation.Invocation, c *invocation.Cluster, q *explanation.Question, system string) ([]explanation.Policy, error) {
	if system == "" {
		if found, err := c.FindSystemNamespace(ctx, ""); err == nil {
			system = found
		}
	}
	cluster := explanation.Cluster{Reader: c, Mapper: c.Mapper, System: system}
	return explanation.ExplainPolicies(ctx, cluster, q, func() time.Time { return inv.ServerTime(c) })
}
