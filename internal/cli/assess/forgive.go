// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
)

func (a *app) forgiveCommand() *cobra.Command {
	var dryRun string
	cmd := &cobra.Command{
		Use:   "forgive POLICY",
		Short: "Let a policy remediate again after remediations without help",
		Long: `A policy leaves a drift to people (IneffectiveChain) in three cases: three
remediations in a row were reverted, two built upon each other without help, or five
were made within four hours. Forgive records that you have looked: earlier
remediations do not count for the policy any more. It needs the permission to change
the policy.`,
		Example:           invocation.Examples("# Try again", "%s assess forgive production"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.forgive(cmd, args, dryRun) },
		ValidArgsFunction: remediation.CompletePolicy(a.Invocation),
	}
	invocation.AddDryRunFlag(cmd, &dryRun, "If client, only print the request. If server, submit the request without persisting it.")
	return cmd
}

func (a *app) forgive(cmd *cobra.Command, args []string, dryRun string) error {
	name, err := invocation.OneArgument(cmd, args, "policy")
	if err != nil {
		return err
	}
	if err := invocation.CheckDryRun(cmd, dryRun); err != nil {
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
	words := "forgiven"
	switch dryRun {
	case "client":
		words += " (dry run)"
	case "server":
		words += " (server dry run)"
	}
	if dryRun != "client" {
		if err := actions.RequestForgiveness(cmd.Context(), c, policy, a.Now(), dryRun == "server"); err != nil {
			return fmt.Errorf("the repairs of %s were not forgiven: %w", policy.Name, err)
		}
	}
	return a.Print("remediationpolicy.plumbline.dev/", invocation.Printable(policy.Name), " ", words, "\n")
}
