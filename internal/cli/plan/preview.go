// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/preview"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
)

func (a *app) previewCommand() *cobra.Command {
	var output, system string
	cmd := &cobra.Command{
		Use:   "preview POLICY",
		Short: "Show the plans that a policy would make now, and try them as a dry run",
		Long: `Show the plans that a policy would make now, in any mode. It is the same decision
as the assessor's, from the objects that you may read. Each write is then tried as a
server-side dry run with your permissions: whether it leads to the authorized state,
its changes, and the cause of a rejection. No object is stored.

The executor writes as its own service account, which a guard in mode Deny lets
through and perhaps not you; with --as that account the dry runs are its own.
The preview ignores limits over time: "policy explain" shows them.`,
		Example: invocation.Examples(
			"# Preview a policy", "%s plan preview production",
			"# The same with the executor's permissions, for a program", "%s plan preview production --as system:serviceaccount:plumbline-system:plumbline-executor -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.preview(cmd, args, output, system)
		},
		ValidArgsFunction: remediation.CompletePolicy(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml", "wide")
	invocation.AddSystemFlag(cmd, &system)
	return cmd
}

func (a *app) preview(cmd *cobra.Command, args []string, output, system string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	name, err := invocation.OneArgument(cmd, args, "policy")
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	policy, err := remediation.GetPolicy(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	return preview.ShowPolicy(cmd.Context(), a.Invocation, c, policy, system, output)
}
