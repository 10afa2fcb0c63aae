// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/preview"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// ShowPolicy prints the plans that a policy would make now. system is Plumbline's namespace, or empty.
func ShowPolicy(ctx context.Context, inv *invocation.Invocation, c *invocation.Cluster, policy *v1alpha1.RemediationPolicy, system, output string) error {
	report, err := preview.ReportPolicy(ctx, clusterOf(c, system), policy, timesOf(inv, c))
	if err != nil {
		return err
	}
	return printReport(inv, report, output)
}

// ShowRequest prints the plans by which a policy would answer a request, and returns the report.
func ShowRequest(ctx context.Context, inv *invocation.Invocation, c *invocation.Cluster, policy *v1alpha1.RemediationPolicy, request *v1alpha1.RemediationRequest, system, output string) (*preview.Report, error) {
	report, err := preview.ReportRequest(ctx, clusterOf(c, system), policy, request, timesOf(inv, c))
	if err != nil {
		return nil, err
	}
	return report, printReport(inv, report, output)
}

func clusterOf(c *invocation.Cluster, system string) preview.Cluster {
	return preview.Cluster{Reader: c, Mapper: c.Mapper, Targets: c.Targets, System: system}
}

func timesOf(inv *invocation.Invocation, c *invocation.Cluster) preview.Times {
	return preview.Times{Now: inv.ServerTime(c), Clock: inv.Now}
}

func printReport(inv *invocation.Invocation, report *preview.Report, output string) error {
	if invocation.IsStructured(output) {
		return inv.PrintReport(output, "PreviewReport", report)
	}
	return inv.Print(describe(inv, report, output == "wide"))
}

func describe(inv *invocation.Invocation, r *preview.Report, wide bool) string {
	d := &invocation.Description{}
	steps := 0
	for i := range r.Plans {
		steps += len(r.Plans[i].Steps)
	}
	d.Line(0, "Policy %s (%s): %s for %s; %d drifted, of %d selected.", r.Policy, r.Mode, plural.Of(len(r.Plans), "plan"), plural.Of(steps, "object"), r.Drifted, r.Selected)
	for _, problem := range r.Problems {
		d.Line(1, "it makes no plans: %s", problem)
	}
	if r.Waiting != "" {
		d.Line(1, "%s", r.Waiting)
	}
	for i := range r.Plans {
		describePlan(inv, d, &r.Plans[i], wide)
	}
	if len(r.Notify) > 0 {
		d.Section("Notifies people about, and does not write")
		for _, object := range r.Notify {
			d.Line(1, "%s", object)
		}
	}
	if len(r.LeftOut) > 0 {
		d.Section("Left out")
	}
	for _, l := range r.LeftOut {
		until := ""
		if l.Until != nil {
			until = " (" + inv.FormatUntil(metav1.NewTime(*l.Until)) + ")"
		}
		d.Line(1, "%s/%s  %s: %s%s", l.Namespace, l.Object, l.Reason, l.Message, until)
	}
	d.Line(0, "")
	d.Line(0, "%s", wording.DescribePreview(r))
	return d.String()
}

func describePlan(inv *invocation.Invocation, d *invocation.Description, p *preview.Plan, wide bool) {
	when := "begins at once"
	if p.ScheduledFor != nil {
		when = "waits " + inv.FormatUntil(metav1.NewTime(*p.ScheduledFor))
	}
	d.Section(fmt.Sprintf("Plan %s/%s, %s", p.Namespace, p.Name, when))
	for i := range p.Steps {
		s := &p.Steps[i]
		d.Line(1, "%s %d  %s  %s  %s", wording.MarkDryRun(s.Outcome), i, s.Object, s.Action, wording.DescribeDryRun(s.Outcome))
		if s.Message != "" {
			d.Line(3, "%s", s.Message)
		}
		if len(s.FieldManagers) > 0 {
			d.Line(3, "its fields go back to %s", strings.Join(s.FieldManagers, ", "))
		}
		d.Line(3, "severity %s (%d), since %s, by %s", s.Severity, s.Score, inv.FormatAge(metav1.NewTime(s.FirstSeen)), wording.ListActors(s.Actors))
		for _, change := range s.Changes {
			describeChange(d, change, wide)
		}
	}
}

// describeChange is one path that the write changes, with its values before and after.
func describeChange(d *invocation.Description, c actions.Change, wide bool) {
	limit := wording.ValueWidth
	if wide {
		limit = 1 << 16 // as long as it is
	}
	before, after := wording.Shorten(c.Before, limit), wording.Shorten(c.After, limit)
	switch {
	case c.Before == "":
		d.Line(3, "%s: + %s", wording.NamePath(c.Path), after)
	case c.After == "":
		d.Line(3, "%s: - %s", wording.NamePath(c.Path), before)
	default:
		d.Line(3, "%s: %s → %s", wording.NamePath(c.Path), before, after)
	}
}
