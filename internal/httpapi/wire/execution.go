// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Execution is what became of a request to put objects back.
type Execution struct {
	PolicyName string `json:"policyName"`
	// Requests are the RemediationRequests that the API made, each for at most ten objects of a namespace.
	Requests []ExecutionRequest `json:"requests"`
}

// ExecutionRequest is a RemediationRequest. The assessor answers it with a plan, or refuses it.
type ExecutionRequest struct {
	Object
	RequestedBy   string                        `json:"requestedBy"`
	Reason        string                        `json:"reason,omitempty"`
	BaselineNames []string                      `json:"baselineNames"`
	Outcome       Word[v1alpha1.RequestOutcome] `json:"outcome,omitempty" doc:"Absent until the assessor has answered."`
	PlanName      string                        `json:"planName,omitempty"`
	Message       string                        `json:"message,omitempty"`
	LeftOut       []LeftOut                     `json:"leftOut,omitempty"`
}

// ExecutionRequestOf shows a request.
func ExecutionRequestOf(r *v1alpha1.RemediationRequest) ExecutionRequest {
	out := ExecutionRequest{
		Object: objectOf(&r.ObjectMeta), RequestedBy: r.Spec.RequestedBy, Reason: r.Spec.Reason, BaselineNames: []string{},
		Outcome: Spell(r.Status.Outcome), PlanName: r.Status.PlanName, Message: r.Status.Message,
	}
	for _, target := range r.Spec.Targets {
		out.BaselineNames = append(out.BaselineNames, target.BaselineName)
	}
	for _, left := range r.Status.LeftOut {
		out.LeftOut = append(out.LeftOut, LeftOut{left.BaselineName, left.Reason, left.Message})
	}
	return out
}
