// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	scopeCluster     = "Cluster"
	scopeEnvironment = "Environment"
)

type haltOptions struct {
	everywhere bool
	system     string
	reason     string
	dryRun     string
}

func (a *app) haltCommand() *cobra.Command {
	var o haltOptions
	cmd := &cobra.Command{
		Use:   "halt (ENVIRONMENT ... | --all-environments) --reason REASON",
		Short: "Stop all remediation of an Environment at once",
		Long: `Stop everything that puts drift back in an Environment, or in the whole cluster:
nothing more is granted, and plans that have not ended are canceled. It is
written into the RemediationLedger, which the executor reads before each write.
It holds until unhalt.`,
		Example: examples(
			"# Stop remediation of production", "%s halt production --reason 'INC-9: do not touch anything'",
			"# Stop it everywhere", "%s halt --all-environments --reason 'INC-9'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.reason == "" {
				return usageErrorf(cmd, "say why, with --reason: whoever finds nothing repaired will ask")
			}
			return a.setHalt(cmd, args, o, true)
		},
		ValidArgsFunction: a.completeEnvironment,
	}
	o.addFlags(cmd)
	addReasonFlag(cmd, &o.reason)
	return cmd
}

func (a *app) unhaltCommand() *cobra.Command {
	var o haltOptions
	cmd := &cobra.Command{
		Use:   "unhalt (ENVIRONMENT ... | --all-environments)",
		Short: "Let remediation go on after a halt",
		Long: `Take a halt back. Plans that it canceled stay canceled; while the drift lasts,
active policies make new ones.`,
		Example:           examples("# Go on", "%s unhalt production"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.setHalt(cmd, args, o, false) },
		ValidArgsFunction: a.completeEnvironment,
	}
	o.addFlags(cmd)
	return cmd
}

func (o *haltOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.everywhere, "all-environments", false, "All Environments and objects of the cluster, those to come included.")
	addSystemFlag(cmd, &o.system)
	addDryRunFlag(cmd, &o.dryRun, "If client, only print what would be done. If server, submit the request without persisting it.")
}

// addSystemFlag names where Plumbline itself runs; -n is where the user works.
func addSystemFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVar(namespace, "system-namespace", "", "Namespace in which Plumbline runs; found by its ledgers when left out.")
}

// ledgers are those of Plumbline's namespace. Without a name for it, it is where
// ledgers are, or the usual one for a user who has rights there alone; more than one
// such place is for a person to tell apart.
func (c *cluster) ledgers(ctx context.Context, system string) ([]v1alpha1.RemediationLedger, error) {
	list := &v1alpha1.RemediationLedgerList{}
	err := c.List(ctx, list, client.InNamespace(system))
	if apierrors.IsForbidden(err) && system == "" {
		err = c.List(ctx, list, client.InNamespace(usualNamespace))
	}
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for i := range list.Items {
		if namespace := list.Items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	if len(namespaces) > 1 {
		slices.Sort(namespaces)
		return nil, fmt.Errorf("there are ledgers in the namespaces %s: say in which of them Plumbline runs, with --system-namespace", strings.Join(namespaces, ", "))
	}
	return list.Items, nil
}

func (a *app) setHalt(cmd *cobra.Command, args []string, o haltOptions, halt bool) error {
	if o.everywhere == (len(args) > 0) {
		return usageErrorf(cmd, "name Environments, or the whole cluster with --all-environments")
	}
	if err := firstOf(checkReason(cmd, o.reason), checkDryRun(cmd, o.dryRun)); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.connect()
	if err != nil {
		return err
	}
	me, err := c.whoami(ctx)
	if err != nil {
		return err
	}
	ledgers, err := c.ledgers(ctx, o.system)
	if err != nil {
		return err
	}
	if o.everywhere {
		args = []string{""}
	}
	var failed []error
	for _, environment := range args {
		failed = append(failed, a.haltLedger(ctx, c, ledgers, environment, me, o, halt))
	}
	return errors.Join(failed...)
}

// ledgerOf finds the ledger of an Environment, or with none that of the cluster.
func ledgerOf(ledgers []v1alpha1.RemediationLedger, environment string) (*v1alpha1.RemediationLedger, error) {
	for i := range ledgers {
		l := &ledgers[i]
		if (environment == "" && l.Spec.Scope == scopeCluster) || (environment != "" && l.Spec.Scope == scopeEnvironment && l.Name == environment) {
			return l, nil
		}
	}
	what := "the cluster"
	if environment != "" {
		what = "Environment " + environment
	}
	return nil, fmt.Errorf("%s has no RemediationLedger: the executor makes it when it first runs, and until then nothing is put back", what)
}

func (a *app) haltLedger(ctx context.Context, c *cluster, ledgers []v1alpha1.RemediationLedger, environment, me string, o haltOptions, halt bool) error {
	ledger, err := ledgerOf(ledgers, environment)
	if err != nil {
		return err
	}
	done, content := "halted", any(map[string]any{"requestedBy": me, "reason": o.reason})
	if !halt {
		done, content = "unhalted", nil
	}
	switch current := ledger.Spec.Halt; {
	case !halt && current == nil:
		return a.haltResult(environment, "is not halted")
	case current != nil && halt:
		return a.haltResult(environment, withReason("is halted already, by "+actorName(current.RequestedBy), current.Reason))
	case o.dryRun == "client":
		return a.haltResult(environment, done+" (dry run)")
	}
	err = submit(ctx, c, "its ledger", ledger, func(*v1alpha1.RemediationLedger) (map[string]any, error) {
		return map[string]any{"spec": map[string]any{"halt": content}}, nil
	}, dryRunOptions(o.dryRun)...)
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
	return a.print(printable(haltName(environment)), " ", printable(words), "\n")
}
