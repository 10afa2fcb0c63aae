// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type setOptions struct {
	dryRun string
	wait   invocation.Wait
}

func (a *app) setCommand() *cobra.Command {
	var o setOptions
	cmd := &cobra.Command{
		Use:   "set NAME VARIATION=PERCENTAGE...",
		Short: "Set the percentages of a release without a rollout",
		Long: `Set the percentages of variations. The stable variation gets the rest, unless the
command names the stable variation too. Each other variation keeps its percentage. A
percentage has at most two decimals.

The command waits until the proxies have acknowledged the new split. The stages set
the percentages of a release with a rollout: use the verbs advance and rollback there.`,
		Example: invocation.Examples(
			"# Send half of the requests to the canary", "%s release set web canary=50",
			"# Send all requests to the stable variation", "%s release set web canary=0"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.set(cmd, args, o) },
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, only print the split. If server, submit the request without persisting it.")
	o.wait.AddFlags(cmd, "the proxies have acknowledged the split")
	return cmd
}

func (a *app) set(cmd *cobra.Command, args []string, o setOptions) error {
	given, err := parseSplit(cmd, args)
	if err := invocation.FirstError(err, invocation.CheckDryRun(cmd, o.dryRun), o.wait.Check(cmd)); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(cmd.Context(), c, args[0])
	if err != nil {
		return err
	}
	planned, err := actions.PlanSplit(r, given)
	if err == nil && o.dryRun != "client" {
		err = actions.RequestSplit(cmd.Context(), c, r, given, o.dryRun == "server")
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s was not set: %w", releaseName(r), err)
	case o.dryRun == "client":
		return a.result(r, "set to "+describeSplit(r, planned)+" (dry run)")
	case o.dryRun == "server":
		return a.result(r, "set to "+describeSplit(r, r.Spec.TrafficSplit.Percentages)+" (server dry run)")
	case o.wait.Timeout() == 0:
		return a.result(r, "set to "+describeSplit(r, r.Spec.TrafficSplit.Percentages))
	}
	return a.awaitSplit(cmd.Context(), c, r, o.wait.Timeout())
}

// parseSplit reads the arguments VARIATION=PERCENTAGE behind the name.
func parseSplit(cmd *cobra.Command, args []string) (map[string]string, error) {
	if len(args) < 2 {
		return nil, invocation.UsageErrorf(cmd, "name one release, and percentages as VARIATION=PERCENTAGE")
	}
	given := map[string]string{}
	for _, arg := range args[1:] {
		variation, percentage, isPair := strings.Cut(arg, "=")
		if _, twice := given[variation]; !isPair || twice || variation == "" || percentage == "" {
			return nil, invocation.UsageErrorf(cmd, "give each variation once, as VARIATION=PERCENTAGE: %q", arg)
		}
		given[variation] = percentage
	}
	return given, nil
}

// describeSplit is "stable 50 / canary 50", in the order of the spec.
func describeSplit(r *v1alpha1.ABRelease, percentages map[string]v1alpha1.Percentage) string {
	parts := make([]string, 0, len(r.Spec.Variations))
	for i := range r.Spec.Variations {
		name := string(r.Spec.Variations[i].Name)
		p := percentages[name]
		parts = append(parts, name+" "+p.String())
	}
	return strings.Join(parts, " / ")
}

// awaitSplit waits until the proxies have acknowledged the split of this generation, or the release is Stalled.
func (a *app) awaitSplit(ctx context.Context, c *invocation.Cluster, r *v1alpha1.ABRelease, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	words, generation := describeSplit(r, r.Spec.TrafficSplit.Percentages), r.Generation
	last, gone := r, false
	err := actions.Await(deadline, c, r, &v1alpha1.ABReleaseList{}, func(current *v1alpha1.ABRelease, deleted bool) bool {
		last, gone = current, deleted
		return deleted || isAnswered(current, generation)
	})
	stalled := meta.FindStatusCondition(last.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case gone:
		return fmt.Errorf("%s was deleted meanwhile", releaseName(r))
	case err != nil && deadline.Err() == nil:
		return fmt.Errorf("%s: set; waiting for the proxies: %w", releaseName(r), err)
	case !isAnswered(last, generation):
		return fmt.Errorf("%s: set to %s, and not acknowledged within %s: %s", releaseName(r), words, patience, describeAcknowledgment(last, generation))
	case stalled != nil && stalled.Status == "True":
		return fmt.Errorf("%s: set to %s, and not effective: %s", releaseName(r), words, stalled.Message)
	}
	return a.result(last, "set to "+words+": "+describeAcknowledgment(last, generation))
}

// isAnswered tells whether the discovery server has refused this generation, or the proxies have acknowledged its split.
func isAnswered(r *v1alpha1.ABRelease, generation int64) bool {
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionAcknowledged} {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil && c.Status == "True" && c.ObservedGeneration >= generation {
			return true
		}
	}
	return false
}

func describeAcknowledgment(r *v1alpha1.ABRelease, generation int64) string {
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionAcknowledged)
	if c == nil || c.ObservedGeneration < generation {
		return "no discovery server has answered"
	}
	return c.Message
}
