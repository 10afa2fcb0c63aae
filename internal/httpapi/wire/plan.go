// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// PlanStatus is how far a plan is, in the words of the published design. Sealing is running there, and
// Canceled, Superseded and Skipped have one word; Plan.Phase tells them apart.
type PlanStatus string

// planEnded stands for the phases that end a plan without an outcome.
const planEnded PlanStatus = "Ended"

func planStatusOf(phase v1alpha1.PlanPhase) PlanStatus {
	switch phase {
	case v1alpha1.PlanSealing:
		return PlanStatus(v1alpha1.PlanRunning)
	case v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
		return planEnded
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused,
		v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed:
		return PlanStatus(phase)
	case "":
		return PlanStatus(v1alpha1.PlanCreated)
	}
	return PlanStatus(phase)
}

// PlanStatusOf returns the status of a plan.
func PlanStatusOf(p *v1alpha1.RemediationPlan) Word[PlanStatus] {
	return Spell(planStatusOf(p.Status.Phase))
}

// Plan is a RemediationPlan.
type Plan struct {
	Object
	// DriftReportID is the same for all plans about the same drift of the same objects.
	DriftReportID   string                             `json:"driftReportId"`
	Policy          PlanPolicy                         `json:"policy"`
	Status          Word[PlanStatus]                   `json:"status"`
	Batches         []Batch                            `json:"batches"`
	ScheduledFor    *time.Time                         `json:"scheduledFor"`
	StartedAt       *time.Time                         `json:"startedAt"`
	CompletedAt     *time.Time                         `json:"completedAt"`
	DeferralReason  *string                            `json:"deferralReason"`
	Phase           Word[v1alpha1.PlanPhase]           `json:"phase,omitempty"`
	Ending          bool                               `json:"ending" doc:"The plan was asked to end, and it is made sure that no write is under way."`
	EndedBy         string                             `json:"endedBy,omitempty"`
	EndedReason     string                             `json:"endedReason,omitempty"`
	ResumeAt        *time.Time                         `json:"resumeAt,omitempty"`
	DeadlineAt      time.Time                          `json:"deadlineAt"`
	EnvironmentID   string                             `json:"environmentId,omitempty"`
	EnvironmentName string                             `json:"environmentName"`
	Trigger         Word[v1alpha1.RemediationTrigger]  `json:"trigger"`
	Strategy        Word[v1alpha1.RemediationStrategy] `json:"strategy"`
	InitiatedBy     string                             `json:"initiatedBy"`
	Requester       string                             `json:"requester"`
	CorrelationID   string                             `json:"correlationId"`
	Control         *PlanControl                       `json:"control,omitempty"`
	LeftOut         []LeftOut                          `json:"leftOut,omitempty"`
	LeftOutTotal    int32                              `json:"leftOutTotal,omitempty"`
	Effect          Word[v1alpha1.EffectVerdict]       `json:"effect,omitempty"`
	Conditions      []Condition                        `json:"conditions,omitempty"`
}

// PlanPolicy is the policy that a plan was made by, as it was then.
type PlanPolicy struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Digest     string `json:"digest"`
}

// PlanControl is the request of a person to a plan: execute, pause or cancel.
type PlanControl struct {
	Verb        string `json:"verb"`
	RequestedBy string `json:"requestedBy,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// Batch has the targets that are worked on at the same time.
type Batch struct {
	Order               int32     `json:"order"`
	Targets             []Target  `json:"targets"`
	DelayAfter          *Duration `json:"delayAfter" nullable:"true"`
	RequiresHealthCheck bool      `json:"requiresHealthCheck"`
}

// Target is one object that a plan writes.
type Target struct {
	// TargetID is the uid of the object, or is derived from the plan for an object that is gone.
	TargetID   string                           `json:"targetId"`
	TargetName string                           `json:"targetName"`
	Drift      Drift                            `json:"drift"`
	Severity   Severity                         `json:"severity"`
	Action     Word[v1alpha1.RemediationAction] `json:"action"`
	// ActionPayload names the BaselineRevision that is put back.
	ActionPayload *string                   `json:"actionPayload"`
	APIVersion    string                    `json:"apiVersion"`
	Kind          string                    `json:"kind"`
	BaselineName  string                    `json:"baselineName"`
	DriftedHash   string                    `json:"driftedHash"`
	DesiredHash   string                    `json:"desiredHash"`
	State         Word[v1alpha1.StepState]  `json:"state,omitempty"`
	Reason        Word[v1alpha1.StepReason] `json:"reason,omitempty"`
	Message       string                    `json:"message,omitempty"`
}

// LeftOut is a drifted object that a plan does not have, and why.
type LeftOut struct {
	BaselineName string `json:"baselineName"`
	Reason       string `json:"reason"`
	Message      string `json:"message,omitempty"`
}

// PlanOf shows a plan.
func PlanOf(p *v1alpha1.RemediationPlan, uids *Uids) Plan {
	plan, status := &p.Spec.Plan, &p.Status
	out := Plan{
		Object: objectOf(&p.ObjectMeta), DriftReportID: driftReportIDOf(plan),
		Policy: PlanPolicy{plan.Policy.UID, plan.Policy.Name, plan.Policy.Generation, plan.Policy.Digest},
		Status: Spell(planStatusOf(status.Phase)), Phase: Spell(status.Phase), Ending: status.Phase == v1alpha1.PlanSealing,
		Batches: batchesOf(p), ScheduledFor: timeOf(plan.ScheduledTime), StartedAt: timeOf(status.StartTime),
		CompletedAt: timeOf(status.CompletionTime), DeferralReason: textOf(status.DeferralReason), ResumeAt: timeOf(status.ResumeTime),
		DeadlineAt: plan.DeadlineTime.UTC(), EndedBy: status.EndedBy, EndedReason: status.EndedReason,
		EnvironmentID: uids.Environments[plan.EnvironmentName], EnvironmentName: plan.EnvironmentName,
		Trigger: Spell(plan.Trigger), Strategy: Spell(plan.Strategy), InitiatedBy: plan.InitiatedBy, Requester: plan.Requester,
		CorrelationID: plan.CorrelationID, LeftOutTotal: plan.LeftOutTotal, Effect: Spell(status.Effect),
	}
	if c := p.Spec.Control; c.Verb != "" {
		out.Control = &PlanControl{underscored(string(c.Verb)), c.RequestedBy, c.Reason}
	}
	for _, left := range plan.LeftOut {
		out.LeftOut = append(out.LeftOut, LeftOut{left.BaselineName, left.Reason, left.Message})
	}
	out.Conditions = conditionsOf(status.Conditions)
	return out
}

// driftReportIDOf writes the id of the drift as a UUID. A plan of before that id has one that is derived
// from its correlation id.
func driftReportIDOf(plan *v1alpha1.PlannedRemediation) string {
	const digits = 32
	if id := plan.DriftReportID; len(id) == digits {
		return hyphened(id)
	}
	return nameID("drift-report", plan.CorrelationID)
}

func batchesOf(p *v1alpha1.RemediationPlan) []Batch {
	plan := &p.Spec.Plan
	batches := make([]Batch, 0, len(plan.Batches))
	for _, b := range plan.Batches {
		batch := Batch{Order: b.Order, Targets: make([]Target, 0, len(b.Steps)), RequiresHealthCheck: b.RequiresHealthCheck == v1alpha1.Enabled}
		if b.DelayAfter != nil {
			batch.DelayAfter = &Duration{b.DelayAfter.Duration}
		}
		for _, step := range b.Steps {
			if int(step) < len(plan.Targets) {
				batch.Targets = append(batch.Targets, targetOf(p, step))
			}
		}
		batches = append(batches, batch)
	}
	return batches
}

func targetOf(p *v1alpha1.RemediationPlan, step int32) Target {
	t := &p.Spec.Plan.Targets[step]
	out := Target{
		TargetID: TargetIDOf(p, step), TargetName: t.Name, Action: Spell(t.Action), ActionPayload: textOf(t.Revision),
		Drift: Drift{
			Type: Spell(t.DriftType), DetectedAt: t.FirstSeenTime.UTC(), ComponentID: t.Name, Paths: t.Paths, Actors: t.Actors,
		},
		Severity:   severityOf(&t.Severity, p.CreationTimestamp.Sub(t.FirstSeenTime.Time)),
		APIVersion: t.APIVersion, Kind: t.Kind, BaselineName: t.BaselineName, DriftedHash: t.DriftedHash, DesiredHash: t.DesiredHash,
	}
	if s := StepOf(p, step); s != nil {
		out.State, out.Reason, out.Message = Spell(s.State), Spell(s.Reason), s.Message
	}
	return out
}

// TargetIDOf returns the uid of a target. Events of the plan name the target by the same id.
func TargetIDOf(p *v1alpha1.RemediationPlan, step int32) string {
	if uid := p.Spec.Plan.Targets[step].UID; uid != "" {
		return uid
	}
	return derivedTargetID(string(p.UID), step)
}

// derivedTargetID returns the id of a target that has no uid.
func derivedTargetID(plan string, step int32) string {
	return nameID("target", plan, strconv.Itoa(int(step)))
}

// StepOf returns how far a step is; nil while the plan was not looked at.
func StepOf(p *v1alpha1.RemediationPlan, step int32) *v1alpha1.PlanStep {
	for i := range p.Status.Steps {
		if p.Status.Steps[i].Index == step {
			return &p.Status.Steps[i]
		}
	}
	return nil
}
