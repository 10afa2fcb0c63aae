// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// Policy is a policy as it is in force.
type Policy struct {
	v1alpha1.PlanPolicy
	Spec v1alpha1.RemediationPolicySpec
}

// Repair is a state that a drift can be put back to.
type Repair struct {
	// Revision holds the body, Hash is what it must hash to.
	Revision, RevisionHash string
	// DesiredHash is the guarded hash that the object then has.
	DesiredHash string
}

// Recreation says whether an object that is gone may be made again.
type Recreation struct {
	Allowed bool
	// Reason in one word where it is not, e.g. Imported.
	Reason string
}

// Drift is one drifted object that the policy selects.
type Drift struct {
	Namespace, Baseline string
	Target              v1alpha1.BaselineTarget
	// UID of the object; of one that is gone, the one that was authorized.
	UID string
	// DriftedHash is its guarded hash now.
	DriftedHash string
	State       v1alpha1.DriftState
	Findings    []v1alpha1.Finding
	Severity    v1alpha1.Severity
	FirstSeen   time.Time
	// Authorized is what it should be; nil when nothing is authorized.
	Authorized *Repair
	// Ready is the newest authorized state that was ready; nil when none is known.
	Ready *Repair
	// To is the authorized state that a request chose for a rollback; nil when it chose
	// none, or the state is not known.
	To *Repair
	// Scaled is what it is now with the authorized number of replicas; nil when
	// that did not change.
	Scaled *Repair
	// BodyLost says that the revision with the authorized number is gone or damaged.
	BodyLost bool
	// Component of the object in its Environment.
	Component string
	// Forbidden says that its kind is never written, whoever asks.
	Forbidden bool
	// Managed says that every guard lets Plumbline write it.
	Managed bool
	// AcceptedBy names the person who asked to authorize the object as it is, and waits for
	// the answer; empty without such a person.
	AcceptedBy string
	// Denied says which permission a plan for it lacks, and how to give it; empty when it
	// lacks none, or that was not asked.
	Denied string
	// Suspended says that a guard is, Contended that writers fight over it.
	Suspended, Contended bool
	// Frozen names the guard that sees a mass drift; empty when none does.
	Frozen string
	// FrozenUntil is when a mass drift that its guard does not tell of is counted again; zero where the
	// guard does.
	FrozenUntil time.Time
	// QuarantinedBy is who keeps requests from it; empty while it is not in quarantine.
	QuarantinedBy string
	// LiftedBy is the person who lifted a quarantine of this very drift; empty when none did.
	LiftedBy string
	// Rollout names the run of an ABRelease that is under way and has it as a variation; empty when
	// none has.
	Rollout string
	// Terminating says that it, or its namespace, is being deleted.
	Terminating bool
	// Claim names the plan that holds it; empty when none does, or that plan has
	// ended or is gone.
	Claim string
	// MeasuredBy names the assessment that measures the effect of its last repair; empty when none does.
	MeasuredBy string
	// MeasuredUntil is when that assessment ends at the latest.
	MeasuredUntil time.Time
	// GitOps names the tool that would put it back itself; empty when none would.
	GitOps string
	// ActiveWriter is a trusted writer who has just changed it; empty when none has.
	ActiveWriter string
	// ActiveUntil is when that no longer counts as just.
	ActiveUntil time.Time
	// Attributed says that the writer of every finding is known, and that none of
	// them falls into a gap of what is known.
	Attributed bool
	// Recreation counts when the object is gone.
	Recreation Recreation
	// Attempts counts the plans that ended without success for this very drift.
	Attempts int
	// LastFailure says in words why the last of them ended so; empty when that is not known.
	LastFailure string
	// Ended are the uids of the plans for this very drift that have ended and are still stored, in
	// the order in which they ended.
	Ended []string
	// RetryAt is before when no further plan for the object is made, after plans that
	// ended without success; zero when there were none.
	RetryAt time.Time
	// Chain of repairs that did not help, of this action on this object, whatever their drift, plan
	// or policy.
	Chain effect.Chain
	// CanceledBy is who canceled a plan of this policy for this very drift; empty
	// when nobody did.
	CanceledBy string
	// ChosenBy is the user whose request put the object into its present state by a
	// rollback to a chosen revision; empty when no request did.
	ChosenBy string
	// DoneBy is the plan of this policy that has done all it can about this very
	// drift; empty when none has. A restart, say, leaves the drift as it is.
	DoneBy string
}

// Scope counts the objects a policy selects.
type Scope struct {
	// Selected are all of them, drifted or not.
	Selected int
	// Healthy and Unhealthy count those that did not drift, that no plan under way puts back,
	// and whose health is known.
	Healthy, Unhealthy int
}

// Opening says whether the policy's schedule lets it act.
type Opening struct {
	Open bool
	// Next is when it does; zero when that is never, or now.
	Next time.Time
	// Why says for people what is closed.
	Why string
}

// Input is everything a plan depends on.
type Input struct {
	Policy Policy
	Drifts []Drift
	Scope  Scope
	// UnderWay are the policy's plans that have not ended.
	UnderWay []v1alpha1.RemediationPlan
	// PlansMade are the times at which the policy's plans were made, in any order.
	PlansMade []time.Time
	// Dependencies is the component graph of the Environment.
	Dependencies []v1alpha1.ComponentDependencies
	Opening      Opening
	// AccessAsked says that Denied of each drift holds the answer of the API server.
	AccessAsked bool
	// InitiatedBy is system:auto, or the user who asked for it.
	InitiatedBy string
	// InitiatedByGroups are the groups of that user.
	InitiatedByGroups []string
	// Request of InitiatedBy; nil for the plans that the policy makes by itself.
	Request *Request
	Now     time.Time
}
