// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// maxRequested is the bound of the API, and the most that one operation ever writes.
const maxRequested = 10

type remediateOptions struct {
	policy string
	to     int64
	reason string
	dryRun string
	output string
	system string
	wait   time.Duration
}

func (a *app) remediateCommand() *cobra.Command {
	var o remediateOptions
	cmd := &cobra.Command{
		Use:   "remediate TYPE/NAME ... --policy POLICY",
		Short: "Put drifted objects back now, in your name",
		Long: `Ask an active policy to put drifted objects of the namespace back now. The assessor
makes a plan in your name with the planner of the policy: its action, its limits, its
brakes and its exceptions hold. Your word stands for the trigger, the schedule, the
minimum severity and both bounds of the age; and for the decision of a person, after
three plans in vain or a canceled one. The plan writes an object only if you may, and
the author of the policy may too.

The request names the state that runs now: an object that changes before the plan is
made is left alone. An object that is left out is named with the reason, and the exit
code is then 1.

--to chooses the authorized state that a rollback leads to, by its number in "history";
the action of the policy must be Rollback. --dry-run shows the plan and tries each write
as "plan preview" does; --dry-run=server sends the request without storing it.

-o prints the RemediationRequest with its answer: status.planName names the plan. With
--dry-run it prints what "plan preview" prints.`,
		Example: examples(
			"# Put back what is too old for the policy", "%s remediate deploy/web --policy production --reason 'INC-9, agreed with ops'",
			"# See what that would do", "%s remediate deploy/web deploy/cart --policy production --dry-run",
			"# Roll back to an authorized state of before", "%s remediate deploy/web --policy production-rollback --to 3"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.remediate(cmd, args, o)
		},
		ValidArgsFunction: a.completeObject(),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.policy, "policy", "", "The RemediationPolicy whose action and limits count; required.")
	flags.Int64Var(&o.to, "to", 0, "The revision that a rollback of one object leads to; the last one that was ready, when left out.")
	addReasonFlag(cmd, &o.reason)
	addDryRunFlag(cmd, &o.dryRun, "If client, show the plan and try its writes. If server, submit the request without persisting it.")
	addOutputFlag(cmd, &o.output, "json", "yaml")
	addSystemFlag(cmd, &o.system)
	flags.DurationVar(&o.wait, "wait", defaultWait, "How long to wait, in all, until the assessor has answered and the plan is under way; 0s: do not wait.")
	mustComplete(cmd, "policy", a.completePolicy())
	return cmd
}

func (o *remediateOptions) validate(cmd *cobra.Command, args []string) error {
	parsed, err := parseArguments(cmd, args)
	switch {
	case err != nil:
		return err
	case len(parsed) == 0 || parsed[0].name == "":
		return usageErrorf(cmd, "name objects as TYPE/NAME")
	case len(parsed) > maxRequested:
		return usageErrorf(cmd, "a request has at most %d objects, not %d", maxRequested, len(parsed))
	case o.policy == "":
		return usageErrorf(cmd, "name the policy with --policy")
	case cmd.Flags().Changed("to") && o.to < 1:
		return usageErrorf(cmd, "revisions are numbered from 1, not %d", o.to)
	case o.to > 0 && len(parsed) != 1:
		return usageErrorf(cmd, "--to is about one object, and %d are named", len(parsed))
	}
	return firstOf(checkReason(cmd, o.reason), checkDryRun(cmd, o.dryRun), checkWait(cmd, o.wait), checkOutput(cmd, o.output, "json", "yaml"))
}

func (a *app) remediate(cmd *cobra.Command, args []string, o remediateOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.connect()
	if err != nil {
		return err
	}
	policy, err := c.answeringPolicy(ctx, o)
	if err != nil {
		return err
	}
	found, failed := c.selectBaselines(ctx, cmd, args, selection{})
	baselines, refused := chooseDrifted(found.baselines)
	failed = errors.Join(failed, refused)
	if len(baselines) == 0 {
		return failed
	}
	request, err := c.remediationRequest(ctx, baselines, o)
	if err != nil {
		return errors.Join(failed, err)
	}
	if o.dryRun == "client" {
		return errors.Join(failed, a.previewRequest(ctx, c, policy, request, o))
	}
	return errors.Join(failed, a.requestRemediation(ctx, c, baselines, request, o))
}

// answeringPolicy reads the policy, which must answer requests. A user who may not read
// policies gets none, and the assessor tells what is wrong with it.
func (c *cluster) answeringPolicy(ctx context.Context, o remediateOptions) (*v1alpha1.RemediationPolicy, error) {
	policy, err := c.policy(ctx, o.policy)
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

func notRequested(why string) error { return fmt.Errorf("nothing was requested: %s", printable(why)) }

// chooseDrifted keeps what there is to put back, and tells of the rest.
func chooseDrifted(found []v1alpha1.Baseline) ([]v1alpha1.Baseline, error) {
	var chosen []v1alpha1.Baseline
	var failed []error
	for i := range found {
		b := &found[i]
		if why := actions.RefuseRemediation(b); why != "" {
			failed = append(failed, fmt.Errorf("%s is not put back: %s", inNamespace(b), remediationRefusalWords(why)))
			continue
		}
		chosen = append(chosen, *b)
	}
	return chosen, errors.Join(failed...)
}

func remediationRefusalWords(reason actions.RemediationRefusalReason) string {
	switch reason {
	case actions.RemediationRetired:
		return "it is retired, nothing to put back"
	case actions.RemediationUnguarded:
		return "no guard selects it any more"
	case actions.RemediationInSync:
		return "it is in sync, nothing to put back"
	case actions.RemediationUnknown:
		return "its state is unknown: what was not read is not put back"
	default:
		return string(reason)
	}
}

// remediationRequest is the request for these objects in the user's name, before it is sent.
func (c *cluster) remediationRequest(ctx context.Context, baselines []v1alpha1.Baseline, o remediateOptions) (*v1alpha1.RemediationRequest, error) {
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return nil, err
	}
	var targets []v1alpha1.RequestedTarget
	for i := range baselines {
		target := v1alpha1.RequestedTarget{BaselineName: baselines[i].Name, DriftedHash: baselines[i].Status.Observed.Hash}
		if o.to > 0 {
			if target.Revision, err = c.revisionName(ctx, &baselines[i], o.to); err != nil {
				return nil, err
			}
		}
		targets = append(targets, target)
	}
	return actions.NewRemediationRequest(c.namespace, o.policy, me, o.reason, targets), nil
}

// revisionName names an authorized state that is kept. Where the user may not read bodies,
// the assessor tells whether it is.
func (c *cluster) revisionName(ctx context.Context, b *v1alpha1.Baseline, number int64) (string, error) {
	_, err := c.revision(ctx, b, number)
	switch {
	case apierrors.IsNotFound(err):
		return "", notRequested(fmt.Sprintf("--to: revision %d of %s does not exist or is no longer kept: \"%s history %s\" lists them", number, baselineObject(b), displayName, baselineObject(b)))
	case err != nil && !apierrors.IsForbidden(err):
		return "", err
	}
	return specguard.RevisionName(b.Name, number), nil
}

// previewRequest decides as the assessor does, and tries the writes. Nothing is stored.
func (a *app) previewRequest(ctx context.Context, c *cluster, policy *v1alpha1.RemediationPolicy, request *v1alpha1.RemediationRequest, o remediateOptions) error {
	world := c.planningWorld(o.system)
	request.Name, request.UID = request.GenerateName+"preview", previewUID
	gathered, err := planning.Gather(ctx, world, planning.Question{
		Policy: policy, InitiatedBy: request.Spec.RequestedBy, InitiatedByGroups: request.Spec.RequestedByGroups, Request: request, Now: a.serverTime(c),
	})
	if err != nil {
		return err
	}
	report, err := a.preview(ctx, c, world, policy, gathered)
	if err != nil {
		return err
	}
	for i := range report.Plans { // the name of a plan follows from the request that is stored
		report.Plans[i].Name = "(named when it is made)"
	}
	if err := a.printPreview(report, o.output); err != nil {
		return err
	}
	switch {
	case len(report.Problems) > 0:
		return fmt.Errorf("nothing would be put back: policy %s makes no plans before it is put right", policy.Name)
	case len(report.LeftOut) > 0:
		return fmt.Errorf("%d of %s would not be put back", len(report.LeftOut), plural.Of(len(request.Spec.Targets), "object"))
	}
	return nil
}
