// SPDX-License-Identifier: Apache-2.0

package wire

// ReasonRequest says why a verb is asked for.
type ReasonRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"256" doc:"For people; kept with the request."`
}

// ActivateRequest names the groups whose rights an active policy has beside those of its author.
type ActivateRequest struct {
	ReasonRequest
	Groups *[]string `json:"groups,omitempty" maxItems:"32" doc:"Groups of the caller; all of them if the field is left out, and none for an empty list."`
}

// AcceptRequest asks that the state that the caller has seen becomes the authorized one.
type AcceptRequest struct {
	ReasonRequest
	Hash string `json:"hash" minLength:"1" maxLength:"128" doc:"Observed.hash of the Baseline as the caller has seen it: another state is refused."`
}

// AdvanceRequest names the stage that a run goes to; the next one if it is left out.
type AdvanceRequest struct {
	ReasonRequest
	StageNumber *int32 `json:"stageNumber,omitempty" minimum:"1" maximum:"16"`
}

// StageRequest names the run and the stage that the caller has seen: a request about another one is refused.
type StageRequest struct {
	ReasonRequest
	RunNumber   *int64 `json:"runNumber,omitempty" minimum:"1" doc:"The run that the caller has seen; the one under way if the field is left out."`
	StageNumber *int32 `json:"stageNumber,omitempty" minimum:"1" maximum:"16" doc:"The stage that the caller has seen; the one under way if the field is left out."`
}

// LiftRequest asks that the quarantine that the caller has seen ends.
type LiftRequest struct {
	ReasonRequest
	Token string `json:"token" minLength:"1" maxLength:"128" doc:"Quarantine.token of the Baseline as the caller has seen it: another quarantine stays."`
}

// HaltRequest says why remediation stops. People who find drift without remediation will ask.
type HaltRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256"`
}

// PromoteRequest names the variation that gets all requests: "A" is the stable one.
type PromoteRequest struct {
	ReasonRequest
	Variation string `json:"variation" pattern:"^[A-H]$" doc:"A is the stable variation."`
}

// PreviewRequest asks which plans a policy would make. It has the id of a policy, or a policy that is
// not stored.
type PreviewRequest struct {
	PolicyID string   `json:"policyId,omitempty" maxLength:"317"`
	Policy   *Policy  `json:"policy,omitempty"`
	Targets  []string `json:"targets,omitempty" minItems:"1" maxItems:"100" doc:"Ids of Baselines; left out, all that the policy is about."`
}

// ExecuteRequest asks a policy to put objects back now, in the name of the caller. A request without
// targets is refused: it never means all.
type ExecuteRequest struct {
	ReasonRequest
	PolicyID string   `json:"policyId" minLength:"1" maxLength:"317"`
	Targets  []string `json:"targets" minItems:"1" maxItems:"100" doc:"Ids of Baselines."`
	// RevisionNumber is nil for the last state that was ready.
	RevisionNumber *int64 `json:"revisionNumber,omitempty" minimum:"1" doc:"The number of the authorized state that a rollback leads to; by default that of the last state that was ready. The action of the policy must be rollback."`
}
