// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

func (a *app) explainCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain NAME|TYPE/NAME",
		Short: "Show the reason and the deadline of an assessment's wait",
		Long: `Show the reason and the deadline of an assessment's wait, and its present
measurements. TYPE/NAME is the newest assessment of an object.`,
		Example:           invocation.Examples("# When is the verdict there?", "%s assess explain deploy/web"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args, output) },
		ValidArgsFunction: a.complete(),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) explain(cmd *cobra.Command, args []string, output string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
		return err
	}
	if len(args) == 0 {
		return invocation.UsageErrorf(cmd, "name one assessment, or an object as TYPE/NAME")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	x, err := a.find(cmd, c, args)
	if err != nil {
		return err
	}
	gates := actions.ListEffectGates(x, a.Now())
	if output != "" {
		return a.PrintReport(output, "AssessmentExplanation", map[string]any{"assessment": x.Name, "namespace": x.Namespace, "phase": wording.AssessmentPhaseOf(x), "gates": gates})
	}
	d := &invocation.Description{}
	d.Line(0, "%s, %s by %s: %s", actions.NameTarget(&x.Spec.Target.BaselineTarget), x.Spec.Action, wording.NameSubject(x), wording.DescribeEnd(x))
	for _, g := range gates {
		mark, until := "✓", ""
		if !g.Passed {
			mark = "…"
		}
		if g.Until != nil {
			until = "; " + a.FormatUntil(metav1.NewTime(*g.Until))
		}
		d.Line(1, "%s %-14s %s%s", mark, g.Name, g.Value, until)
	}
	if effect.Phase(x.Status.Phase).Ended() {
		d.Line(0, "=> %s", wording.Conclude(x))
	} else {
		d.Line(0, "=> %s", fmt.Sprintf("It is %s.", wording.AssessmentPhaseOf(x)))
	}
	return a.Print(d.String())
}
