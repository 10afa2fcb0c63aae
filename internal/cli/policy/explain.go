// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
)

type explainOptions struct {
	output        string
	system        string
	allNamespaces bool
}

func (a *app) explainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain (POLICY [TYPE/NAME ...] | TYPE/NAME ...)",
		Short: "Explain whether a drift would be remediated, and when",
		Long: `Explain, for each drift that a policy is about, every gate between it and its
remediation: the state of the gate, the condition that opens it, and the time until
which it is closed. The first line says whether the drift is remediated now, when it
will be, or which change is necessary. All gates are asked, also those behind a closed
one. Closed and unknown gates come first. Open gates without a bound share a line, and so
do limits that only the executor knows, unless -o wide.

With TYPE/NAME alone, every policy that selects the object is explained. A gate that
you may not read is unknown, and shown as unknown. The limits of the whole cluster
are options of the executor, which only the executor knows.`,
		Example: invocation.Examples(
			"# Explain a drift without remediation", "%s policy explain deploy/web",
			"# Explain the waits of a policy, everywhere", "%s policy explain production -A",
			"# One policy and one object, for a program", "%s policy explain production deploy/web -o json"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args, o) },
		ValidArgsFunction: a.completePolicyThenObject,
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	invocation.AddSystemFlag(cmd, &o.system)
	return cmd
}

// completePolicyThenObject completes a policy first, and objects from then on, or
// when a slash says so.
func (a *app) completePolicyThenObject(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 && !strings.Contains(typed, "/") {
		return remediation.CompletePolicy(a.Invocation)(cmd, args, typed)
	}
	return guarded.CompleteObject(a.Invocation)(cmd, nil, typed)
}

// question is the question of a command line.
type question struct {
	explanation.Question
	one bool // the policy was named
}

func (a *app) explain(cmd *cobra.Command, args []string, o explainOptions) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	if len(args) == 0 {
		return invocation.UsageErrorf(cmd, "name a policy, or an object as TYPE/NAME")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	q, err := newQuestion(c, cmd, args, o)
	if err != nil {
		return err
	}
	found, err := a.explainAll(cmd.Context(), c, q, o.system)
	if err != nil {
		return err
	}
	if invocation.IsStructured(o.output) {
		return a.PrintReport(o.output, "ExplanationList", map[string]any{"items": found})
	}
	return a.printExplanations(q, found, o.output == "wide")
}

func newQuestion(c *invocation.Cluster, cmd *cobra.Command, args []string, o explainOptions) (*question, error) {
	q := &question{Question: explanation.Question{Namespace: c.Namespace}}
	if o.allNamespaces {
		q.Namespace = metav1.NamespaceAll
	}
	if !strings.Contains(args[0], "/") {
		policy, err := remediation.GetPolicy(cmd.Context(), c, args[0])
		if err != nil {
			return nil, err
		}
		q.Policies, q.one, args = []v1alpha1.RemediationPolicy{*policy}, true, args[1:]
	} else {
		list := &v1alpha1.RemediationPolicyList{}
		if err := c.List(cmd.Context(), list); err != nil {
			return nil, err
		}
		q.Policies = list.Items
	}
	if len(args) == 0 {
		return q, nil
	}
	if !strings.Contains(args[0], "/") {
		return nil, invocation.UsageErrorf(cmd, "name objects as TYPE/NAME: %q", args[0])
	}
	found, err := guarded.Select(cmd.Context(), c, cmd, args, guarded.Selection{AllNamespaces: o.allNamespaces})
	q.Objects = found.Baselines
	return q, err
}

func (a *app) explainAll(ctx context.Context, c *invocation.Cluster, q *question, system string) ([]explain.Explanation, error) {
	policies, err := remediation.ExplainDrifts(ctx, a.Invocation, c, &q.Question, system)
	found := []explain.Explanation{}
	for i := range policies {
		for _, problem := range policies[i].Problems {
			a.Warn("policy %s makes no plans before this is put right: %v", policies[i].Name, problem)
		}
		found = append(found, policies[i].Drifts...)
	}
	return found, err
}

func (a *app) printExplanations(q *question, found []explain.Explanation, wide bool) error {
	d := &invocation.Description{}
	for i := range found {
		if i > 0 {
			d.Line(0, "")
		}
		a.describeExplanation(d, &found[i], wide)
	}
	for i := range q.Objects {
		b := &q.Objects[i]
		if slices.ContainsFunc(found, func(e explain.Explanation) bool { return e.Namespace == b.Namespace && e.Baseline == b.Name }) {
			continue
		}
		d.Line(0, "%s: %s", wording.QualifiedName(b), wording.DescribeUnexplained(b, q.named()))
	}
	if len(found) == 0 && len(q.Objects) == 0 {
		_, err := fmt.Fprintln(a.ErrOut, "No object that the policy selects has drifted.")
		return err
	}
	return a.Print(a.Paint(d.String()))
}

// named is the policy that was named; empty without one.
func (q *question) named() string {
	if q.one {
		return q.Policies[0].Name
	}
	return ""
}

// describeExplanation writes the verdict, the gates that it rests on when they are closed or unknown, and then the others.
func (a *app) describeExplanation(d *invocation.Description, e *explain.Explanation, wide bool) {
	d.Line(0, "%s/%s, policy %s: severity %s (%d)", e.Namespace, actions.NameTarget(&e.Target), e.Policy, e.Severity.Level, e.Severity.Score)
	d.Line(0, "=> %s.", wording.DescribeVerdict(e, a.Now()))
	if e.Command != "" {
		d.Line(0, "   %s", wording.DescribeCommand(e))
	}
	width := 0
	for i := range e.Gates {
		_, name := wording.SplitGate(&e.Gates[i])
		width = max(width, utf8.RuneCountInString(name))
	}
	decides := func(g explain.Gate) bool { return g.State != explain.Open && !g.Aside }
	rest := slices.DeleteFunc(slices.Clone(e.Gates), decides)
	closed := slices.DeleteFunc(slices.Clone(e.Gates), func(g explain.Gate) bool { return !decides(g) })
	a.describeGates(d, closed, width, wide)
	if len(closed) > 0 && len(rest) > 0 {
		d.Line(1, "Open, or left aside")
	}
	a.describeGates(d, rest, width, wide)
}

// describeGates writes a line for each gate, those of each ledger together. Open gates without a bound share one line, and
// so do gates that depend on options of the executor, unless -o wide asks for each.
func (a *app) describeGates(d *invocation.Description, gates []explain.Gate, width int, wide bool) {
	var place string
	var unbound, unseen []string
	for i := range gates {
		g := &gates[i]
		at, name := wording.SplitGate(g)
		if at != place {
			describeShared(d, unbound, unseen)
			place, unbound, unseen = at, nil, nil
			d.Line(1, "Ledger %s", at)
		}
		switch {
		case !wide && wording.IsUnbound(g):
			unbound = append(unbound, name)
		case !wide && wording.IsUnseen(g):
			unseen = append(unseen, name)
		default:
			d.Line(1, "%s %-*s  %s", wording.MarkGate(g.State), width, name, wording.DescribeGate(g, a.Now()))
		}
	}
	describeShared(d, unbound, unseen)
}

// describeShared writes the lines that several gates share.
func describeShared(d *invocation.Description, unbound, unseen []string) {
	if len(unseen) > 0 {
		d.Line(1, "%s %s", wording.MarkGate(explain.Unknown), wording.DescribeUnseen(unseen))
	}
	if len(unbound) > 0 {
		d.Line(1, "%s %s", wording.MarkGate(explain.Open), wording.DescribeUnbound(unbound))
	}
}
