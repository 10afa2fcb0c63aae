// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// verb asks something of a run.
type verb struct {
	name     string
	asks     v1alpha1.RolloutVerb
	done     string // the participle, for results
	examples string
	// stage and variation tell which flags the verb has.
	stage, variation bool
}

var verbs = []verb{
	{name: "start", asks: "Start", done: "started", examples: invocation.Examples("# Start", "%s release start web")},
	{
		name: "advance", asks: "Advance", done: "advanced", stage: true,
		examples: invocation.Examples("# To the next stage", "%s release advance web", "# To stage 3", "%s release advance web --stage 3"),
	},
	{name: "approve", asks: "Approve", done: "approved", stage: true, examples: invocation.Examples("# Approve the stage under way", "%s release approve web")},
	{name: "skip", asks: "Skip", done: "skipped", stage: true, examples: invocation.Examples("# Skip the stage under way", "%s release skip web")},
	{
		name: "promote", asks: "Promote", done: "promoted", variation: true,
		examples: invocation.Examples("# End the run in favor of green", "%s release promote web --variation green"),
	},
	{name: "rollback", asks: "Rollback", done: "rolled back", examples: invocation.Examples("# Go back", "%s release rollback web --reason 'INC-9'")},
	{name: "retry", asks: "Retry", done: "retried", examples: invocation.Examples("# Try it again", "%s release retry web")},
}

type verbOptions struct {
	stage     int32
	variation string
	reason    string
	dryRun    string
	wait      invocation.Wait
}

func (a *app) verbCommand(v verb) *cobra.Command {
	var o verbOptions
	words := wording.ReleaseVerbs[v.asks]
	cmd := &cobra.Command{
		Use: v.name + " NAME", Short: words.Short, Long: words.Long, Example: v.examples,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.ask(cmd, args, v, o) },
		ValidArgsFunction: a.completeRelease,
	}
	if v.stage {
		cmd.Flags().Int32Var(&o.stage, "stage", 0, "Number of the stage; left out, the stage under way, or of advance the next one.")
	}
	if v.variation {
		cmd.Flags().StringVar(&o.variation, "variation", "", "The variation that gets all requests.")
	}
	invocation.AddReasonFlag(cmd, &o.reason)
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, only print the request. If server, submit the request without persisting it.")
	o.wait.AddFlags(cmd, "the discovery server has answered")
	return cmd
}

func (a *app) ask(cmd *cobra.Command, args []string, v verb, o verbOptions) error {
	if len(args) != 1 {
		return invocation.UsageErrorf(cmd, "name one release")
	}
	if v.variation && o.variation == "" {
		return invocation.UsageErrorf(cmd, "name the variation that gets all requests, with --variation")
	}
	if err := invocation.FirstError(invocation.CheckReason(cmd, o.reason), invocation.CheckDryRun(cmd, o.dryRun), o.wait.Check(cmd)); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	me, err := actions.AskIdentity(cmd.Context(), c)
	if err != nil {
		return err
	}
	r, err := read(cmd.Context(), c, args[0])
	if err != nil {
		return err
	}
	control, err := actions.PlanReleaseVerb(r, v.asks, o.stage, o.variation, me.Username, o.reason)
	if err != nil {
		return fmt.Errorf("%s was not %s: %w", releaseName(r), v.done, err)
	}
	if o.dryRun == "client" {
		return a.result(r, v.done+" (dry run)")
	}
	if err := actions.RequestReleaseVerb(cmd.Context(), c, r, control, o.dryRun == "server"); err != nil {
		return fmt.Errorf("%s was not %s: %w", releaseName(r), v.done, err)
	}
	switch {
	case o.dryRun == "server":
		return a.result(r, v.done+" (server dry run)")
	case o.wait.Timeout() == 0:
		return a.result(r, "asked to be "+v.done)
	}
	return a.await(cmd.Context(), c, r, control, v, o.wait.Timeout())
}

// await waits until the discovery server has answered.
func (a *app) await(ctx context.Context, c *invocation.Cluster, r *v1alpha1.ABRelease, control *v1alpha1.RolloutControl, v verb, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	progress, refusal, last, err := actions.AwaitReleaseVerb(deadline, c, r, control)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && deadline.Err() == nil:
		return fmt.Errorf("%s: asked for; waiting for it: %w", releaseName(r), err)
	case progress == actions.Pending:
		return fmt.Errorf("%s: asked for, and not %s within %s: no discovery server has answered", releaseName(r), v.done, patience)
	case progress == actions.Refused:
		return fmt.Errorf("%s was not %s: %s", releaseName(r), v.done, refusal)
	}
	words := v.done
	if in := last.Status.Rollout; in.Run != nil {
		words += fmt.Sprintf(": run %d is %s", in.Run.Number, in.Run.State)
		if stage := describeStage(in); stage != "" {
			words += ", stage " + stage
		}
	}
	return a.result(last, words)
}

func (a *app) pauseCommand(name string, pause v1alpha1.Toggle) *cobra.Command {
	var dryRun string
	words, done := wording.ReleasePause, "paused"
	if pause == v1alpha1.Disabled {
		words, done = wording.ReleaseResume, "resumed"
	}
	cmd := &cobra.Command{
		Use: name + " NAME", Short: words.Short, Long: words.Long, Example: invocation.Examples("# "+words.Short, "%s release "+name+" web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			if err := invocation.CheckDryRun(cmd, dryRun); err != nil {
				return err
			}
			return a.setPause(cmd.Context(), args[0], pause, done, dryRun)
		},
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddDryRunFlag(cmd, &dryRun, "If client, only print the request. If server, submit the request without persisting it.")
	return cmd
}

func (a *app) setPause(ctx context.Context, name string, pause v1alpha1.Toggle, done, dryRun string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	switch {
	case actions.IsPauseAsWanted(r, pause):
		return a.result(r, "is "+done+" already")
	case dryRun == "client":
		return a.result(r, done+" (dry run)")
	}
	if err := actions.RequestReleasePause(ctx, c, r, pause, dryRun == "server"); err != nil {
		return fmt.Errorf("%s was not %s: %w", releaseName(r), done, err)
	}
	if dryRun == "server" {
		done += " (server dry run)"
	}
	return a.result(r, done)
}

func (a *app) result(r *v1alpha1.ABRelease, words string) error {
	return a.Print(invocation.Printable(releaseName(r)), " ", invocation.Printable(words), "\n")
}

// completeRelease completes the names of releases in the namespace.
func (a *app) completeRelease(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all := &v1alpha1.ABReleaseList{}
	if err := c.List(cmd.Context(), all, client.InNamespace(c.Namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
