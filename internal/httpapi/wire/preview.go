// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Preview has plans that are not stored, the objects that they leave out, and the answers of the API
// server to dry runs of their writes with the rights of the caller.
type Preview struct {
	// Selected objects of the policy; of those Drifted, and of those Eligible to be put back.
	Selected int `json:"selected"`
	Drifted  int `json:"drifted"`
	Eligible int `json:"eligible"`
	// Problems of the policy that the schema does not see; with any there are no plans.
	Problems   []string         `json:"problems,omitempty"`
	WaitingFor string           `json:"waitingFor,omitempty" doc:"Reason of the wait of the whole policy."`
	NextLookAt *time.Time       `json:"nextLookAt,omitempty" doc:"When the plans may be others."`
	Notify     []string         `json:"notify,omitempty" doc:"Objects of which people are told, and that are not written."`
	Plans      []Plan           `json:"plans" doc:"Plans that are not stored; their ids are zeros."`
	LeftOut    []PreviewLeftOut `json:"leftOut"`
	DryRuns    []DryRun         `json:"dryRuns"`
}

// PreviewLeftOut is a drifted object that no plan would have, and why.
type PreviewLeftOut struct {
	Namespace string `json:"namespace"`
	LeftOut
	Until *time.Time `json:"until,omitempty" doc:"When the reason ends, where that is known."`
}

// DryRunOutcome is the result of a dry run.
type DryRunOutcome string

// DryRun is the answer of the API server to one write.
type DryRun struct {
	Namespace     string              `json:"namespace"`
	BaselineName  string              `json:"baselineName"`
	TargetID      string              `json:"targetId"`
	Accepted      bool                `json:"accepted" doc:"The write leads to the authorized state."`
	Outcome       Word[DryRunOutcome] `json:"outcome"`
	Message       string              `json:"message,omitempty"`
	FieldManagers []string            `json:"fieldManagers,omitempty" doc:"Owners of the fields after the write."`
	Changes       []FieldChange       `json:"changes,omitempty"`
}

// FieldChange is one difference at a path, an RFC 6901 pointer. Values that look like secrets are redacted.
type FieldChange struct {
	Path      string                   `json:"path"`
	Operation Word[v1alpha1.Operation] `json:"operation"`
	Before    string                   `json:"before,omitempty"`
	After     string                   `json:"after,omitempty"`
}

// NewPreview returns a preview without plans.
func NewPreview() Preview {
	return Preview{Plans: []Plan{}, LeftOut: []PreviewLeftOut{}, DryRuns: []DryRun{}}
}

// Add adds a plan, with the dry runs of its steps in their order.
func (p *Preview) Add(plan *v1alpha1.RemediationPlan, uids *Uids, dryRuns []DryRun) {
	p.Plans = append(p.Plans, PlanOf(plan, uids))
	for step := range min(len(dryRuns), len(plan.Spec.Plan.Targets)) {
		d := dryRuns[step]
		d.Namespace, d.BaselineName = plan.Namespace, plan.Spec.Plan.Targets[step].BaselineName
		d.TargetID = TargetIDOf(plan, int32(step)) //nolint:gosec // a plan has at most ten steps
		p.DryRuns = append(p.DryRuns, d)
	}
}
