// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) getCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show a release: its stages, the counts of the judge, the reason of a wait",
		Long: `Show the run of a release: its stages, the wanted and the acknowledged weights, and the
observed shares. It has the error rates of both variations with bounds of 95 %, the
verdict of the judge with its bets, the ratio of both rates, φ (the dispersion) and the
counts. Then follow the wait of the run and the next stage, the works of the executor,
and the last lines of the history. With the model TargetGroup or Hybrid it has the
wanted replicas, the ready pods, and those that have restarted in the stage. "–" stands
for a value that the status does not have.`,
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
	return a.Print(a.describe(r, a.ServerTime(c), progress.Trail{}))
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

// describe returns the screen of a release, the answer to the last request, and the end of the history. The
// trail has the e-values that a watch has seen.
func (a *app) describe(r *v1alpha1.ABRelease, now time.Time, trail progress.Trail) string {
	var d invocation.Description
	screen := progress.ScreenOf(r, now)
	screen.Trail = trail
	for _, line := range drawScreen(&screen) {
		d.Line(0, "%s", line)
	}
	in := r.Status.Rollout
	if r.Spec.Rollout == nil || in == nil {
		return d.String()
	}
	if h := in.Handled; h != nil && h.Refusal != "" {
		for _, line := range drawLabeled("refused", fmt.Sprintf("%s by %s: %s", h.Verb, h.RequestedBy, h.Refusal)) {
			d.Line(0, "%s", line)
		}
	}
	describeWorks(&d, r.Name, in)
	describeMessages(&d, &screen)
	describeGates(&d, in.Gates)
	describeHistory(&d, in.History)
	return d.String()
}

// describeWorks lists the works of the run, and the minimum that the executor holds.
func describeWorks(d *invocation.Description, release string, in *v1alpha1.RolloutStatus) {
	var parts []string
	for i := range in.Works {
		w := &in.Works[i]
		text := fmt.Sprintf("%s-%d-%d %s", release, w.Run, w.Number, w.Verb)
		if w.Replicas != nil && w.Verb != v1alpha1.WorkCreateClone {
			text += fmt.Sprintf(" %d", *w.Replicas)
		}
		text += " " + workMark(w.Phase)
		if w.Phase != v1alpha1.WorkSucceeded && w.Message != "" {
			text += " (" + w.Message + ")"
		}
		parts = append(parts, invocation.Printable(text))
	}
	for _, line := range drawParts("works", parts, "  ") {
		d.Line(0, "%s", line)
	}
	if h := in.Hold; h != nil && h.Autoscaler != nil && h.Autoscaler.MinReplicas != nil && h.Autoscaler.FormerMinReplicas != nil {
		text := fmt.Sprintf("minReplicas of HorizontalPodAutoscaler %s is held at %d, and was %d before", h.Autoscaler.Name, *h.Autoscaler.MinReplicas, *h.Autoscaler.FormerMinReplicas)
		for _, line := range drawLabeled("holds", text) {
			d.Line(0, "%s", line)
		}
	}
}

// workMark shows the phase of a work as stages show theirs.
func workMark(phase v1alpha1.ReleaseWorkPhase) string {
	switch phase {
	case v1alpha1.WorkPending, "":
		return progress.MarkStage("Pending")
	case v1alpha1.WorkRunning:
		return progress.MarkStage("Running")
	case v1alpha1.WorkSucceeded:
		return progress.MarkStage("Succeeded")
	case v1alpha1.WorkRefused, v1alpha1.WorkFailed:
		return progress.MarkStage("Failed")
	}
	return "?"
}

// describeMessages tells why stages passed or failed.
func describeMessages(d *invocation.Description, s *progress.Screen) {
	isFirst := true
	for i := range s.Stages {
		stage := &s.Stages[i]
		if stage.Message == "" {
			continue
		}
		if isFirst {
			d.Section("Stages")
			isFirst = false
		}
		d.Line(1, "%s %s %%  %s", progress.MarkStage(stage.State), stage.Percentage, stage.Message)
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
		text := fmt.Sprintf("%s  %s %s  %s", wording.FormatTimestamp(g.AnswerTime), g.Kind, g.Name, point)
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
		d.Line(1, "%s  %s  %s", wording.FormatTimestamp(e.EventTime), e.Event, e.Message)
	}
}

// releaseName is namespace/name, as the results of all verbs begin.
func releaseName(r *v1alpha1.ABRelease) string { return r.Namespace + "/" + r.Name }
