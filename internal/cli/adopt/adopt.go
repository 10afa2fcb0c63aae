// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type adoptOptions struct {
	draft     draftOptions
	since     time.Duration
	output    string
	noHeaders bool
	dryRun    string
	yes       bool
}

// Command returns the command "adopt".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt [guard NAME | -f FILE] [--dry-run]",
		Short: "Propose a guard from the writes so far",
		Long: `Show the objects that a guard would cover, their writers, the fields that
autoscalers own, and the changes that would have been drift lately. Propose the
guard: its trusted writers, its expected writers, and the writers about whom you
have to decide.

The guard is one of the cluster (guard NAME, specguard NAME, clusterspecguard
NAME), one from a file, or a new one: a SpecGuard of the namespace, or with -A or
--namespace-selector a ClusterSpecGuard.

The writers come from the writer stamp, which the API server itself keeps, and
for older writes from managedFields. Managed fields are a hint, not proof: a client
chooses its field manager, they name no user, and they list the fields that a
manager owns, not those of its last write. No writer is trusted for a field
manager. The command proposes at most the usual service account of a known
controller, if it exists.

--dry-run reads and changes no object; with -o yaml it prints the guard alone, for
kubectl apply. Without it the command creates the guard after a confirmation, in
mode Audit, which records drift and sends no warnings. It never overwrites a guard.`,
		Example: invocation.Examples(
			"# Preview a guard of the namespace", "%s adopt -n shop --dry-run",
			"# The proposal as a file to read and apply", "%s adopt -n shop --dry-run -o yaml > guard.yaml",
			"# One guard for all namespaces of a team, StatefulSets alone", "%s adopt --namespace-selector team=shop --kind statefulset --name databases --dry-run",
			"# List the writers that an existing guard does not know yet", "%s adopt guard workloads -n shop --dry-run --since 168h",
			"# Create it, in mode Audit", "%s adopt -n shop --yes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.adopt(cmd, args, o)
		},
	}
	o.draft.addFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&o.since, "since", 24*time.Hour, "Judge writes of this time, e.g. 168h.")
	flags.StringVar(&o.dryRun, "dry-run", "none", `Must be "none", "server", or "client". If client, only print the findings. If server, submit the guard without persisting it too.`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	invocation.AddNoHeadersFlag(cmd, &o.noHeaders)
	invocation.CompleteValues(cmd, "dry-run", "none", "client", "server")
	return cmd
}

func (o *adoptOptions) validate(cmd *cobra.Command, args []string) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	switch {
	case o.since <= 0:
		return invocation.UsageErrorf(cmd, "--since must be longer than 0, not %s", o.since)
	case !slices.Contains([]string{"none", "client", "server"}, o.dryRun):
		return invocation.UsageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, o.dryRun)
	case o.dryRun == "none" && invocation.IsStructured(o.output):
		return invocation.UsageErrorf(cmd, "-o %s prints the findings of --dry-run; add --dry-run", o.output)
	}
	return o.draft.validate(cmd, args)
}

func (a *app) adopt(cmd *cobra.Command, args []string, o adoptOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	draft, err := a.draft(cmd, c, args, o.draft)
	if err != nil {
		return err
	}
	found, err := a.survey(ctx, c, draft, o.since)
	if err != nil {
		return err
	}
	if o.dryRun == "none" && draft.Existing {
		return fmt.Errorf("%s exists and is not overwritten: use --dry-run -o yaml, and apply the parts that you want", draft)
	}
	out := a.Out
	if o.dryRun == "none" { // standard output has the line of the result alone
		out = a.ErrOut
	}
	if err := a.printAdoption(out, found, o); err != nil {
		return err
	}
	if o.dryRun == "client" {
		return nil
	}
	return a.createGuard(ctx, c, found.Proposal.Guard, o)
}

// createGuard asks the server first whether it would take the guard, then the user.
func (a *app) createGuard(ctx context.Context, c *invocation.Cluster, guard adopt.Guard, o adoptOptions) error {
	kind := strings.ToLower(guard.GetObjectKind().GroupVersionKind().GroupKind().String())
	if mode := modeOf(guard); mode != v1alpha1.GuardModeAudit {
		return fmt.Errorf("%s/%s has mode %s: only a guard in mode Audit is created here", kind, guard.GetName(), mode)
	}
	attempt := func(options ...client.CreateOption) error {
		object, ok := guard.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("creating a guard: %T is no object", guard)
		}
		if err := c.Create(ctx, object, options...); err != nil {
			return fmt.Errorf("creating %s/%s: %w", kind, guard.GetName(), err)
		}
		return nil
	}
	if err := attempt(client.DryRunAll); err != nil {
		return err
	}
	if o.dryRun == "server" {
		_, err := fmt.Fprintf(a.ErrOut, "%s/%s created (server dry run)\n", kind, guard.GetName())
		return err
	}
	ask := invocation.Question{
		Ask: fmt.Sprintf("Create %s/%s in mode Audit?", kind, guard.GetName()), Otherwise: "nothing was created", What: "creating a guard",
	}
	if err := a.Confirm(ctx, o.yes, ask); err != nil {
		return err
	}
	if err := attempt(); err != nil {
		return err
	}
	return a.Print(kind, "/", guard.GetName(), " created\n")
}

func modeOf(guard adopt.Guard) v1alpha1.GuardMode {
	switch g := guard.(type) {
	case *v1alpha1.SpecGuard:
		return g.Spec.Mode
	case *v1alpha1.ClusterSpecGuard:
		return g.Spec.Mode
	default:
		return ""
	}
}
