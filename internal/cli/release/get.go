// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) getCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a release: its stages, what the judge has counted, what it waits for",
		Long: `Show the run of a release: its stages, the health of both variations with bounds of
95 %, what the run waits for and what follows, and the last lines of the history.`,
		Example: invocation.Examples("# How far is the rollout of web", "%s release get web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
				return err
			}
			return a.get(cmd.Context(), args[0], output)
		},
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) get(ctx context.Context, name, output string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	if output != "" {
		r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ABRelease"))
		return a.PrintStructured(output, r)
	}
	return a.Print(a.describe(r))
}

func read(ctx context.Context, c *invocation.Cluster, name string) (*v1alpha1.ABRelease, error) {
	r := &v1alpha1.ABRelease{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, r); err != nil {
		return nil, err
	}
	return r, nil
}

// shownHistory is how many lines of the history are shown.
const shownHistory = 8

func (a *app) describe(r *v1alpha1.ABRelease) string {
	var d invocation.Description
	d.Field("Release", releaseName(r))
	d.Field("Service", r.Spec.ServiceName)
	d.Field("In force", r.Status.Split)
	d.Field("Active", string(r.Status.ActiveVariation))
	if acknowledged := r.Status.Acknowledged; acknowledged != nil {
		d.Field("Acknowledged", acknowledged.Count)
	}
	in := r.Status.Rollout
	switch {
	case r.Spec.Rollout == nil:
		d.Field("Rollout", "none: the percentages of the spec are what proxies are told")
		return d.String()
	case in == nil || in.Run == nil:
		d.Field("Rollout", "no run yet")
		return d.String()
	}
	a.describeRun(&d, in.Run)
	if w := in.Waiting; w != nil {
		d.Field("Waits for", w.Reason+": "+w.Message)
		d.Field("Until", a.FormatTime(w.DeadlineTime))
	}
	if h := in.Handled; h != nil && h.Refusal != "" {
		d.Field("Refused", fmt.Sprintf("%s by %s: %s", h.Verb, h.RequestedBy, h.Refusal))
	}
	describeStages(&d, in.Run)
	describeHealth(&d, in)
	describeGates(&d, in.Gates)
	describeHistory(&d, in.History)
	return d.String()
}

func (a *app) describeRun(d *invocation.Description, run *v1alpha1.RolloutRun) {
	d.Field("Run", fmt.Sprintf("%d, %s: %s → %s", run.Number, run.State, run.From.Image, run.To.Image))
	d.Field("Strategy", run.StrategyName)
	d.Field("Began", a.FormatTime(&run.StartTime))
	d.Field("Ended", a.FormatTime(run.CompletionTime))
	d.Field("Because", run.Message)
}

func describeStages(d *invocation.Description, run *v1alpha1.RolloutRun) {
	d.Section("Stages")
	for i := range run.Stages {
		stage := &run.Stages[i]
		text := fmt.Sprintf("%d  %s %%  %s", stage.Number, stage.TrafficPercentage.String(), stage.State)
		if stage.DurationSeconds != nil && *stage.DurationSeconds > 0 {
			text += fmt.Sprintf("  %s, wants %s %% healthy", time.Duration(*stage.DurationSeconds)*time.Second, stage.HealthThreshold.String())
		}
		if stage.RequireApproval == v1alpha1.Enabled {
			text += "  approval"
		}
		if stage.ApprovedBy != "" {
			text += " by " + stage.ApprovedBy
		}
		d.Line(1, "%s", text)
		if stage.Message != "" {
			d.Line(2, "%s", stage.Message)
		}
	}
}

func describeHealth(d *invocation.Description, in *v1alpha1.RolloutStatus) {
	if in.Analysis == nil || len(in.Analysis.Variations) == 0 || in.Stage == 0 {
		return
	}
	d.Section("Health in this stage")
	d.Line(1, "%s: %s", in.Analysis.Verdict, in.Analysis.Message)
	for i := range in.Analysis.Variations {
		v := &in.Analysis.Variations[i]
		text := fmt.Sprintf("%s  errors %s %% [%s, %s]", v.Variation, v.ErrorRate, v.ErrorRateLow, v.ErrorRateHigh)
		if v.LatencyP99Milliseconds > 0 {
			text += fmt.Sprintf("  p50 %d ms  p99 %d ms", v.LatencyP50Milliseconds, v.LatencyP99Milliseconds)
		}
		d.Line(1, "%s  %d requests", text, v.Samples)
	}
}

func describeGates(d *invocation.Description, gates []v1alpha1.RolloutGateStatus) {
	if len(gates) == 0 {
		return
	}
	d.Section("Gates")
	for i := range gates {
		g := &gates[i]
		point := string(g.Event)
		if g.Stage > 0 {
			point += fmt.Sprintf(" %d", g.Stage)
		}
		text := fmt.Sprintf("%s  %s %s  %s", invocation.FormatTimestamp(g.AnswerTime), g.Kind, g.Name, point)
		if g.Value != "" {
			text += "  " + g.Value
		}
		d.Line(1, "%s  %s", text, g.Result)
		if g.Message != "" {
			d.Line(2, "%s", g.Message)
		}
	}
}

func describeHistory(d *invocation.Description, history []v1alpha1.RolloutEvent) {
	if len(history) == 0 {
		return
	}
	d.Section("History")
	for i := max(0, len(history)-shownHistory); i < len(history); i++ {
		e := &history[i]
		d.Line(1, "%s  %s  %s", invocation.FormatTimestamp(e.EventTime), e.Event, e.Message)
	}
}

// releaseName is namespace/name, as the results of all verbs begin.
func releaseName(r *v1alpha1.ABRelease) string { return r.Namespace + "/" + r.Name }
