// SPDX-License-Identifier: Apache-2.0

package halt

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type haltOptions struct {
	everywhere bool
	system     string
	reason     string
	dryRun     string
}

// Command returns the command "halt".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o haltOptions
	cmd := &cobra.Command{
		Use:   "halt (ENVIRONMENT ... | --all-environments) --reason REASON",
		Short: "Stop all remediation of an Environment at once",
		Long: `Stop all remediation in an Environment, or in the whole cluster: the ledger grants
no more steps, and plans that have not ended are canceled. The command writes the
halt into the RemediationLedger, which the executor reads before each write.
It holds until a person runs "resume".`,
		Example: invocation.Examples(
			"# Stop remediation of production", "%s halt production --reason 'INC-9: do not touch anything'",
			"# Stop it everywhere", "%s halt --all-environments --reason 'INC-9'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.reason == "" {
				return invocation.UsageErrorf(cmd, "give the cause with --reason: users that find drift without remediation will ask")
			}
			return a.setHalt(cmd, args, o, true)
		},
		ValidArgsFunction: remediation.CompleteEnvironment(a.Invocation),
	}
	o.addFlags(cmd)
	invocation.AddReasonFlag(cmd, &o.reason)
	return cmd
}

// ResumeCommand returns the command "resume". Its alias is the name that the REST API has for the request.
func ResumeCommand(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o haltOptions
	cmd := &cobra.Command{
		Use:     "resume (ENVIRONMENT ... | --all-environments)",
		Aliases: []string{"unhalt"},
		Short:   "Let remediation go on after a halt",
		Long: `Take a halt back. Plans that it canceled stay canceled; while the drift lasts,
active policies make new ones.`,
		Example:           invocation.Examples("# Go on", "%s resume production"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.setHalt(cmd, args, o, false) },
		ValidArgsFunction: remediation.CompleteEnvironment(a.Invocation),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *haltOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.everywhere, "all-environments", false, "All Environments and objects of the cluster, those to come included.")
	invocation.AddSystemFlag(cmd, &o.system)
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, only print the request. If server, submit the request without persisting it.")
}

func (a *app) setHalt(cmd *cobra.Command, args []string, o haltOptions, halt bool) error {
	if o.everywhere == (len(args) > 0) {
		return invocation.UsageErrorf(cmd, "name Environments, or the whole cluster with --all-environments")
	}
	if err := invocation.FirstError(invocation.CheckReason(cmd, o.reason), invocation.CheckDryRun(cmd, o.dryRun)); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.Connect()
	if err != nil {
		return err
	}
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return err
	}
	ledgers, err := c.ListLedgers(ctx, o.system)
	if err != nil {
		return err
	}
	if o.everywhere {
		args = []string{""}
	}
	var failed []error
	for _, environment := range args {
		failed = append(failed, a.haltLedger(ctx, c, ledgers, environment, me.Username, o, halt))
	}
	return errors.Join(failed...)
}

func (a *app) haltLedger(ctx context.Context, c *invocation.Cluster, ledgers []v1alpha1.RemediationLedger, environment, me string, o haltOptions, halt bool) error {
	ledger, err := actions.FindLedger(ledgers, environment)
	if err != nil {
		return err
	}
	done, wanted := "halted", &v1alpha1.LedgerHalt{RequestedBy: me, Reason: o.reason}
	if !halt {
		done, wanted = "resumed", nil
	}
	switch as := actions.IsHaltAsWanted(ledger, halt); {
	case as && !halt:
		return a.haltResult(environment, "is not halted")
	case as:
		current := ledger.Spec.Halt
		return a.haltResult(environment, wording.AppendReason("is halted already, by "+wording.NameActor(current.RequestedBy), current.Reason))
	case o.dryRun == "client":
		return a.haltResult(environment, done+" (dry run)")
	}
	err = actions.RequestHalt(ctx, c, ledger, wanted, o.dryRun == "server")
	if err != nil {
		return fmt.Errorf("%s was not %s: %w", haltName(environment), done, err)
	}
	if o.dryRun == "server" {
		done += " (server dry run)"
	}
	return a.haltResult(environment, done)
}

func haltName(environment string) string {
	if environment == "" {
		return "cluster"
	}
	return "environment.plumbline.dev/" + environment
}

func (a *app) haltResult(environment, words string) error {
	return a.Print(invocation.Printable(haltName(environment)), " ", invocation.Printable(words), "\n")
}
