// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) whyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Tell why a run goes on, holds, or has ended",
		Long: `Show the conditions of a run, gate by gate, in the order in which the discovery server
checks the gates. "✓" is open, "✗" holds, and "?" is unknown. The text behind "→"
names the condition that opens the gate.

About a run that has ended, the command shows the reason, the numbers of the last
verdict and the rejected revision. It also shows the command that tries the revision
again.`,
		Example: invocation.Examples("# Show the reason for which the rollout of web waits", "%s release why web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
				return err
			}
			return a.why(cmd.Context(), args[0], output)
		},
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) why(ctx context.Context, name, output string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	q := &progress.Question{Release: r}
	if in := r.Spec.Rollout; in != nil && in.StrategyName != "" {
		q.Strategy, q.StrategyUnread = readStrategy(ctx, c, in.StrategyName)
	}
	q.Now = a.ServerTime(c)
	e := progress.Explain(q)
	if output != "" {
		return a.PrintReport(output, "ReleaseExplanation", e)
	}
	return a.Print(describeWhy(r, &e))
}

// readStrategy returns a RolloutStrategy, nil if the strategy does not exist; unread says why it could not
// be read.
func readStrategy(ctx context.Context, c *invocation.Cluster, name string) (spec *v1alpha1.RolloutStrategySpec, unread string) {
	s := &v1alpha1.RolloutStrategy{}
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, s); {
	case apierrors.IsNotFound(err):
		return nil, ""
	case err != nil:
		return nil, err.Error()
	}
	return &s.Spec, ""
}

func describeWhy(r *v1alpha1.ABRelease, e *progress.Explanation) string {
	var d invocation.Description
	switch {
	case r.Spec.Rollout == nil:
		d.Line(0, "%s has no spec.rollout: %s get its percentages", releaseName(r), r.Spec.RouterNoun())
		return d.String()
	case e.Run == nil:
		d.Line(0, "%s has no run yet", releaseName(r))
	default:
		d.Line(0, "%s, run %d, %s: %s → %s", releaseName(r), e.Run.Number, e.Run.State, e.Run.From, e.Run.To)
	}
	if e.End != nil {
		describeEnd(&d, r, e.End)
	}
	for i := range e.Gates {
		gate := &e.Gates[i]
		d.Line(1, "%s %-13s  %s%s", progress.MarkGate(gate.State), gate.Name, gate.Value, orNothing("  → ", gate.Next))
	}
	switch {
	case e.Wait != nil:
		d.Line(0, "=> The run waits for %s", progress.DescribeWait(e.Wait))
	case e.Next != "":
		d.Line(0, "=> The run goes on to %s", e.Next)
	}
	return d.String()
}

func describeEnd(d *invocation.Description, r *v1alpha1.ABRelease, end *progress.End) {
	d.Line(1, "%s%s", end.Reason, orNothing(": ", end.Message))
	if end.Judge != nil {
		d.Line(1, "last verdict  %s%s", end.Judge.Verdict, orNothing(": ", end.Judge.Message))
		for _, line := range drawHealth(end.Judge, &progress.Trail{}) {
			d.Line(2, "%s", line)
		}
	}
	for i := range end.Health {
		h := &end.Health[i]
		d.Line(2, "%s  errors %s %% [%s, %s] in %s requests", h.Variation, progress.FormatRate(h.ErrorRate), progress.FormatRate(h.ErrorRateLow), progress.FormatRate(h.ErrorRateHigh), progress.GroupDigits(h.Samples))
	}
	if rejected := end.Rejected; rejected != nil {
		d.Line(1, "rejected      %s", progress.DescribeRejected(rejected))
		d.Line(1, "try it again  %s", fmt.Sprintf("%s release retry %s -n %s", invocation.DisplayName, r.Name, r.Namespace))
	}
}
