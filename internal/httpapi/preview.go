// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/preview"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// previewPlans tells which plans a policy would make now, and tries their writes with the rights of the caller.
func previewPlans(ctx context.Context, s *server, in *struct{ Body wire.PreviewRequest }) (*got[wire.Preview], error) {
	policy, err := previewedPolicy(ctx, s, &in.Body)
	if err != nil {
		return nil, err
	}
	uids, _, err := readUids(ctx, s.cluster, false)
	if err != nil {
		return nil, err
	}
	reports, err := reportPlans(ctx, s, policy, in.Body.Targets)
	if err != nil {
		return nil, err
	}
	out := wire.NewPreview()
	for i := range reports {
		addReport(&out, &reports[i], uids)
	}
	return answer(&ByID{}, "", out)
}

// previewedPolicy reads the policy that a request names. A policy that is not stored gets its defaults from a
// dry run.
func previewedPolicy(ctx context.Context, s *server, in *wire.PreviewRequest) (*v1alpha1.RemediationPolicy, error) {
	if (in.PolicyID == "") == (in.Policy == nil) {
		return nil, invalidAt("body", "name a policy by policyId, or send one as policy")
	}
	if in.Policy == nil {
		policy, err := policies.one(ctx, s.cluster, in.PolicyID)
		if err != nil && isNotFound(err) {
			return nil, invalidAt("body.policyId", "no RemediationPolicy has this id or name")
		}
		return policy, err
	}
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := specOf(ctx, s, in.Policy, "body.policy")
	if err != nil {
		return nil, err
	}
	if err := actions.SignPolicy(spec, user); err != nil {
		return nil, invalidAt("body.policy.requestedByGroups", err.Error())
	}
	// The name may be that of the policy that the caller is about to replace.
	policy := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: "preview-"}, Spec: *spec}
	if err := s.cluster.Create(ctx, policy, client.DryRunAll); err != nil {
		return nil, &requestError{verb: "create", kind: policies.kind, err: err, locate: func(field string) string {
			return "body.policy" + wire.LocatePolicy(field)[len("body"):]
		}}
	}
	policy.Name = in.Policy.Name
	return policy, nil
}

// reportPlans decides as the assessor does: about all drifts, or about those that are named.
func reportPlans(ctx context.Context, s *server, policy *v1alpha1.RemediationPolicy, targets []string) ([]preview.Report, error) {
	c := preview.Cluster{Reader: s.cluster, Mapper: s.cluster.RESTMapper(), Targets: s.cluster.DryRuns()}
	at := preview.Times{Now: s.cluster.Now(), Clock: time.Now}
	if len(targets) == 0 {
		report, err := preview.ReportPolicy(ctx, c, policy, at)
		if err != nil {
			return nil, ofAny(s.cluster.Scheme(), err)
		}
		return []preview.Report{*report}, nil
	}
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	named, err := namedBaselines(ctx, s, targets)
	if err != nil {
		return nil, err
	}
	var reports []preview.Report
	for _, request := range actions.NewRemediationRequests(policy.Name, user, "", named) {
		report, err := preview.ReportRequest(ctx, c, policy, request, at)
		if err != nil {
			return nil, ofAny(s.cluster.Scheme(), err)
		}
		reports = append(reports, *report)
	}
	return reports, nil
}

// addReport adds the plans of a report. All reports are about one policy.
func addReport(out *wire.Preview, r *preview.Report, uids *wire.Uids) {
	out.Selected, out.Drifted, out.Problems = r.Selected, r.Drifted, r.Problems
	out.Eligible += r.Eligible
	out.WaitingFor, out.NextLookAt = r.Waiting, r.NextLook
	out.Notify = append(out.Notify, r.Notify...)
	for i := range r.Plans {
		dryRuns := make([]wire.DryRun, 0, len(r.Plans[i].Steps))
		for j := range r.Plans[i].Steps {
			dryRuns = append(dryRuns, dryRunOf(&r.Plans[i].Steps[j]))
		}
		out.Add(&r.Plans[i].Planned, uids, dryRuns)
	}
	for _, l := range r.LeftOut {
		out.LeftOut = append(out.LeftOut, wire.PreviewLeftOut{
			Namespace: l.Namespace, LeftOut: wire.LeftOut{BaselineName: l.Baseline, Reason: l.Reason, Message: l.Message}, Until: l.Until,
		})
	}
}

func dryRunOf(s *preview.Step) wire.DryRun {
	out := wire.DryRun{
		Accepted: s.Outcome == preview.Converges, Outcome: wire.Spell(wire.DryRunOutcome(s.Outcome)), Message: s.Message, FieldManagers: s.FieldManagers,
	}
	for _, c := range s.Changes {
		out.Changes = append(out.Changes, wire.FieldChange{Path: c.Path, Operation: wire.Spell(v1alpha1.Operation(c.Operation)), Before: c.Before, After: c.After})
	}
	return out
}
