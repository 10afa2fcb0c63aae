// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// begun is the participle for the plan that a request came to: it begins without a further word.
const begun = "begun"

// requestRemediation sends a request, and waits for its outcome.
func (a *app) requestRemediation(ctx context.Context, c *invocation.Cluster, baselines []v1alpha1.Baseline, request *v1alpha1.RemediationRequest, o remediateOptions) error {
	if err := actions.RequestRemediation(ctx, c, request, o.dryRun == "server"); err != nil {
		return fmt.Errorf("nothing was requested: %w", err)
	}
	switch {
	case o.dryRun == "server":
		return a.tellRequested(baselines, request, "remediation requested (server dry run)", o)
	case o.wait.Timeout() == 0:
		return a.tellRequested(baselines, request, "remediation requested as "+request.Name, o)
	}
	deadline, cancel := context.WithTimeout(ctx, o.wait.Timeout())
	defer cancel()
	answer, err := awaitAnswer(ctx, deadline, c, request, o.wait.Timeout())
	if err != nil {
		return err
	}
	request.Status = answer
	failed := a.tellAnswer(baselines, request, o)
	if answer.PlanName == "" {
		return failed
	}
	return errors.Join(failed, a.awaitBegin(ctx, deadline, c, client.ObjectKey{Namespace: request.Namespace, Name: answer.PlanName}, o))
}

// printRequest prints a request as the cluster has it.
func (a *app) printRequest(request *v1alpha1.RemediationRequest, output string) error {
	printed := request.DeepCopy()
	printed.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RemediationRequest"))
	printed.ManagedFields = nil
	return a.PrintStructured(output, printed)
}

func (a *app) tellRequested(baselines []v1alpha1.Baseline, request *v1alpha1.RemediationRequest, words string, o remediateOptions) error {
	if o.output != "" {
		return a.printRequest(request, o.output)
	}
	for i := range baselines {
		if err := guarded.PrintResult(a.Invocation, &baselines[i], words); err != nil {
			return err
		}
	}
	return nil
}

// awaitAnswer waits until the assessor has answered a request.
func awaitAnswer(ctx, deadline context.Context, c *invocation.Cluster, request *v1alpha1.RemediationRequest, patience time.Duration) (v1alpha1.RemediationRequestStatus, error) {
	progress, answer, err := actions.AwaitRemediationRequest(deadline, c, request)
	switch {
	case ctx.Err() != nil:
		return answer, ctx.Err()
	case progress == actions.Refused:
		return answer, fmt.Errorf("request %s/%s was deleted meanwhile", request.Namespace, request.Name)
	case deadline.Err() != nil && progress == actions.Pending:
		return answer, fmt.Errorf("request %s/%s stands, and the assessor has not answered it within %s; is one running?", request.Namespace, request.Name, patience)
	case err != nil:
		return answer, fmt.Errorf("request %s/%s stands; waiting for the answer: %w", request.Namespace, request.Name, err)
	}
	return answer, nil
}

// tellAnswer tells of each object whether a plan has it, and else why not.
func (a *app) tellAnswer(baselines []v1alpha1.Baseline, request *v1alpha1.RemediationRequest, o remediateOptions) error {
	answer := &request.Status
	if o.output != "" {
		if err := a.printRequest(request, o.output); err != nil {
			return err
		}
	}
	if answer.Message != "" {
		return fmt.Errorf("request %s/%s was refused: %s", request.Namespace, request.Name, invocation.Printable(answer.Message))
	}
	left := map[string]v1alpha1.LeftOut{}
	for _, l := range answer.LeftOut {
		left[l.BaselineName] = l
	}
	var failed []error
	for i := range baselines {
		b := &baselines[i]
		if l, out := left[b.Name]; out || answer.PlanName == "" {
			failed = append(failed, fmt.Errorf("%s is not remediated: %s", wording.QualifiedName(b), invocation.Printable(leftOutWords(l))))
			continue
		}
		if o.output != "" {
			continue
		}
		if err := guarded.PrintResult(a.Invocation, b, "is in plan "+answer.PlanName); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func leftOutWords(l v1alpha1.LeftOut) string {
	words := wording.AppendReason(l.Reason, l.Message)
	if l.Reason == string(planner.ReasonUnderWay) {
		words += fmt.Sprintf("; to begin that plan now, use \"%s plan execute\"", invocation.DisplayName)
	}
	return words
}

// awaitBegin waits until a plan is under way, or tells the cause of its wait.
func (a *app) awaitBegin(ctx, deadline context.Context, c *invocation.Cluster, key client.ObjectKey, o remediateOptions) error {
	plan := &v1alpha1.RemediationPlan{}
	if err := c.Get(deadline, key, plan); err != nil {
		return fmt.Errorf("plan %s is made; waiting for it: %w", key, err)
	}
	outcome, last, err := actions.AwaitPlanVerb(deadline, c, "", plan)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case deadline.Err() != nil && outcome.Progress == actions.Pending:
		return fmt.Errorf("%s is made, and not begun within %s: %s", wording.PlanName(plan), o.wait.Timeout(), remediation.DescribeStanding(last))
	case err != nil:
		return fmt.Errorf("%s is made; waiting for it: %w", wording.PlanName(plan), err)
	case outcome.Progress == actions.Refused, wording.HasEnded(last) && last.Status.Phase != v1alpha1.PlanSucceeded:
		return fmt.Errorf("%s: %s", wording.PlanName(plan), invocation.Printable(remediation.DescribeOutcome(begun, outcome)))
	case o.output != "":
		return nil
	}
	return remediation.PrintResult(a.Invocation, last, remediation.DescribeOutcome(begun, outcome))
}
