// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/preview"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type remediateOptions struct {
	policy string
	to     int64
	reason string
	dryRun string
	output string
	system string
	wait   invocation.Wait
}

// Command returns the command "remediate".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o remediateOptions
	cmd := &cobra.Command{
		Use:   "remediate TYPE/NAME ... --policy POLICY",
		Short: "Remediate drifted objects now, in your name",
		Long: `Ask an active policy to remediate drifted objects of the namespace now. The assessor
makes a plan in your name with the planner of the policy: its action, its limits, its
halts and its exceptions hold. Your request stands for the trigger, the schedule, the
minimum severity and both bounds of the age. It also stands for the decision of a person,
after three plans in vain or a canceled one. The plan writes an object only if you may,
and the author of the policy may too.

The request names the observed state: an object that changes before the plan is
made is left alone. The command names each object that is left out, with the reason, and
the exit code is then 1.

--to chooses the authorized state that a rollback leads to, by its number in "history";
the action of the policy must be Rollback. --dry-run shows the plan and tries each write
as "plan preview" does; --dry-run=server sends the request without storing it.

-o prints the RemediationRequest with its answer: status.planName names the plan. With
--dry-run it prints the output of "plan preview".`,
		Example: invocation.Examples(
			"# Remediate drift that is too old for the policy", "%s remediate deploy/web --policy production --reason 'INC-9, agreed with ops'",
			"# Preview that", "%s remediate deploy/web deploy/cart --policy production --dry-run",
			"# Roll back to an authorized state of before", "%s remediate deploy/web --policy production-rollback --to 3"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.remediate(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.policy, "policy", "", "The RemediationPolicy with the action and the limits that count; required.")
	flags.Int64Var(&o.to, "to", 0, "The revision that a rollback of one object leads to; the last one that was ready, when left out.")
	invocation.AddReasonFlag(cmd, &o.reason)
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, show the plan and try its writes. If server, submit the request without persisting it.")
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml")
	invocation.AddSystemFlag(cmd, &o.system)
	o.wait.AddFlags(cmd, "the assessor has answered and the plan is under way")
	invocation.MustComplete(cmd, "policy", remediation.CompletePolicy(a.Invocation))
	return cmd
}

func (o *remediateOptions) validate(cmd *cobra.Command, args []string) error {
	named := guarded.CountNames(args)
	switch {
	case named == 0:
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME")
	case named > actions.MaxRequested:
		return invocation.UsageErrorf(cmd, "a request has at most %d objects, not %d", actions.MaxRequested, named)
	case o.policy == "":
		return invocation.UsageErrorf(cmd, "name the policy with --policy")
	case cmd.Flags().Changed("to") && o.to < 1:
		return invocation.UsageErrorf(cmd, "revisions are numbered from 1, not %d", o.to)
	case o.to > 0 && named != 1:
		return invocation.UsageErrorf(cmd, "--to is about one object, and %d are named", named)
	}
	return invocation.FirstError(invocation.CheckReason(cmd, o.reason), invocation.CheckDryRun(cmd, o.dryRun), o.wait.Check(cmd), invocation.CheckOutput(cmd, o.output, "json", "yaml"))
}

func (a *app) remediate(cmd *cobra.Command, args []string, o remediateOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.Connect()
	if err != nil {
		return err
	}
	policy, err := answeringPolicy(ctx, c, o)
	if err != nil {
		return err
	}
	found, failed := guarded.Select(ctx, c, cmd, args, guarded.Selection{})
	baselines, refused := chooseDrifted(found.Baselines)
	failed = errors.Join(failed, refused)
	if len(baselines) == 0 {
		return failed
	}
	request, err := remediationRequest(ctx, c, baselines, o)
	if err != nil {
		return errors.Join(failed, err)
	}
	if o.dryRun == "client" {
		return errors.Join(failed, a.previewRequest(ctx, c, policy, request, o))
	}
	return errors.Join(failed, a.requestRemediation(ctx, c, baselines, request, o))
}

// answeringPolicy reads the policy, which must answer requests. A user without the right to
// read policies gets nil, and the assessor tells the faults of the policy.
func answeringPolicy(ctx context.Context, c *invocation.Cluster, o remediateOptions) (*v1alpha1.RemediationPolicy, error) {
	policy, err := remediation.GetPolicy(ctx, c, o.policy)
	switch {
	case actions.IsAbsent(err):
		return nil, notRequested(planner.Refusal(o.policy, nil))
	case apierrors.IsForbidden(err) && o.dryRun != "client":
		return nil, nil //nolint:nilnil // not to be read is an answer
	case err != nil:
		return nil, err
	}
	if why := planner.Refusal(o.policy, policy); why != "" {
		return nil, notRequested(why)
	}
	if o.to > 0 && policy.Spec.Action != v1alpha1.ActionRollback {
		return nil, notRequested(fmt.Sprintf("--to chooses a revision for a Rollback, and spec.action of policy %s is %s: leave --to out, or name another policy", o.policy, policy.Spec.Action))
	}
	return policy, nil
}

func notRequested(why string) error {
	return fmt.Errorf("nothing was requested: %s", invocation.Printable(why))
}

// chooseDrifted keeps the objects with drift to remediate, and returns an error about the others.
func chooseDrifted(found []v1alpha1.Baseline) ([]v1alpha1.Baseline, error) {
	var chosen []v1alpha1.Baseline
	var failed []error
	for i := range found {
		b := &found[i]
		if why := actions.RefuseRemediation(b); why != "" {
			failed = append(failed, fmt.Errorf("%s is not remediated: %s", wording.QualifiedName(b), why.Words()))
			continue
		}
		chosen = append(chosen, *b)
	}
	return chosen, errors.Join(failed...)
}

// remediationRequest is the request for these objects in the user's name, before it is sent.
func remediationRequest(ctx context.Context, c *invocation.Cluster, baselines []v1alpha1.Baseline, o remediateOptions) (*v1alpha1.RemediationRequest, error) {
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return nil, err
	}
	var targets []v1alpha1.RequestedTarget
	for i := range baselines {
		target := v1alpha1.RequestedTarget{BaselineName: baselines[i].Name, DriftedHash: baselines[i].Status.Observed.Hash}
		if o.to > 0 {
			if target.Revision, err = revisionName(ctx, c, &baselines[i], o.to); err != nil {
				return nil, err
			}
		}
		targets = append(targets, target)
	}
	return actions.NewRemediationRequest(c.Namespace, o.policy, me, o.reason, targets), nil
}

// revisionName names an authorized state that is kept. Where the user may not read bodies,
// the assessor tells whether it is.
func revisionName(ctx context.Context, c *invocation.Cluster, b *v1alpha1.Baseline, number int64) (string, error) {
	_, err := difference.GetRevision(ctx, c, b, number)
	switch {
	case apierrors.IsNotFound(err):
		return "", notRequested(fmt.Sprintf("--to: revision %d of %s does not exist or is no longer kept: \"%s history %s\" lists them", number, wording.ObjectOf(b), invocation.DisplayName, wording.ObjectOf(b)))
	case err != nil && !apierrors.IsForbidden(err):
		return "", err
	}
	return specguard.RevisionName(b.Name, number), nil
}

// previewRequest decides as the assessor does, and tries the writes. It stores no object.
func (a *app) previewRequest(ctx context.Context, c *invocation.Cluster, policy *v1alpha1.RemediationPolicy, request *v1alpha1.RemediationRequest, o remediateOptions) error {
	report, err := preview.ShowRequest(ctx, a.Invocation, c, policy, request, o.system, o.output)
	if err != nil {
		return err
	}
	switch {
	case len(report.Problems) > 0:
		return fmt.Errorf("the request would have no effect: policy %s makes no plans before its spec is fixed", policy.Name)
	case len(report.LeftOut) > 0:
		return fmt.Errorf("%d of %s would not be remediated", len(report.LeftOut), plural.Of(len(request.Spec.Targets), "object"))
	}
	return nil
}
