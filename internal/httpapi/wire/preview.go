// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// PreviewRequest asks which plans a policy would make. It has the id of a policy, or a policy that is
// not stored.
type PreviewRequest struct {
	PolicyID string   `json:"policyId,omitempty"`
	Policy   *Policy  `json:"policy,omitempty"`
	Targets  []string `json:"targets,omitempty" maxItems:"100" doc:"Ids of Baselines; left out, all that the policy is about."`
}

// Preview is the answer: plans that are not stored, the objects that they leave out, and the answers
// of the API server to dry runs of their writes with the rights of the caller.
type Preview struct {
	Plans   []Plan    `json:"plans"`
	LeftOut []LeftOut `json:"leftOut"`
	DryRuns []DryRun  `json:"dryRuns"`
}

// DryRun is the answer of the API server to one write.
type DryRun struct {
	TargetID string `json:"targetId"`
	Accepted bool   `json:"accepted"`
	Message  string `json:"message,omitempty"`
}

// ExecuteRequest asks a policy to put objects back now, in the name of the caller. A request without
// targets is refused: it never means all.
type ExecuteRequest struct {
	PolicyID string   `json:"policyId" minLength:"1"`
	Targets  []string `json:"targets" minItems:"1" maxItems:"100" doc:"Ids of Baselines."`
	Reason   string   `json:"reason,omitempty" maxLength:"256"`
}

// ReasonRequest says why a verb is asked for.
type ReasonRequest struct {
	Reason string   `json:"reason,omitempty" maxLength:"256"`
	Groups []string `json:"groups,omitempty" maxItems:"32"`
}

// AdvanceRequest names the stage that a run goes to; the next one if it is left out.
type AdvanceRequest struct {
	StageNumber *int32 `json:"stageNumber,omitempty" minimum:"1" maximum:"16"`
}

// PromoteRequest names the variation that gets all requests: "A" is the stable one.
type PromoteRequest struct {
	Variation string `json:"variation" enum:"A,B"`
}

// PreviewOf shows plans that were made and not stored, with the objects that they leave out.
func PreviewOf(plans []v1alpha1.RemediationPlan, leftOut []v1alpha1.LeftOut, dryRuns []DryRun, uids *Uids) Preview {
	out := Preview{Plans: []Plan{}, LeftOut: []LeftOut{}, DryRuns: append([]DryRun{}, dryRuns...)}
	for i := range plans {
		out.Plans = append(out.Plans, PlanOf(&plans[i], uids))
	}
	for _, left := range leftOut {
		out.LeftOut = append(out.LeftOut, LeftOut{left.BaselineName, left.Reason, left.Message})
	}
	return out
}
