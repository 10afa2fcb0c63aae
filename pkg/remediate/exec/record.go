// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// record writes the signed record of a step that has ended.
func (r *run) record(ctx context.Context, step int32) (protocol.Answer, *v1alpha1.StepEvidence) {
	at, err := r.note(ctx, r.stepRecord(ctx, step))
	if err != nil {
		return protocol.Unknown, nil
	}
	return protocol.Yes, &v1alpha1.StepEvidence{Sequence: at.Sequence, Digest: at.Digest}
}

// stepRecord says how a step ended. All of it comes from what is stored, so that
// it is the same whoever writes it, and when.
func (r *run) stepRecord(ctx context.Context, index int32) evidence.Record {
	step, target := &r.plan.Status.Steps[index], r.target(index)
	record := r.common(evidence.KindStep, timeOf(step.CompletionTime))
	record.Subject = evidence.Subject{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: r.plan.Namespace, Name: target.Name,
		UID: cmp.Or(target.UID, r.uidOf(ctx, index)), Hash: target.DriftedHash,
	}
	record.Drift, record.Severity = evidence.NewDrift(target.Paths), severityOf(&target.Severity)
	record.Step = &evidence.Step{Index: index, Action: string(target.Action), StartedAt: timeOf(step.StartTime)}
	record.Result = evidence.Result{State: string(step.State), Reason: string(step.Reason)}
	if i := step.Intent; i != nil {
		record.Intent = &evidence.Intent{
			Epoch: i.Epoch, UID: cmp.Or(i.UID, record.Subject.UID), ResourceVersion: i.ResourceVersion,
			PreHash: cmp.Or(i.PreHash, specguard.HashAbsent), DesiredHash: target.DesiredHash, DDEM002Hash: i.DDEM002Hash, At: i.StorageTime.Time,
		}
		record.Bodies = artifactsOf(i)
	}
	if result := step.Result; result != nil {
		record.Subject.Hash = result.Hash
		record.Result.ResourceVersion, record.Result.Hash, record.Result.DDEM002Hash = result.ResourceVersion, result.Hash, result.DDEM002Hash
		record.Result.Origin, record.Result.At = originOf(result.Origin), result.RecordTime.Time
	}
	return record
}

// uidOf is the uid of an object that a step made, as far as it can be read; the
// plan's own stands for one that cannot.
func (r *run) uidOf(ctx context.Context, step int32) string {
	raw, err := r.Targets.Get(ctx, r.ref(step))
	if err == nil {
		if metadata, err := metadataOf(raw); err == nil {
			return string(metadata.UID)
		}
	}
	return string(r.plan.UID)
}

// common is what every record of the plan has.
func (r *run) common(kind evidence.Kind, at time.Time) evidence.Record {
	plan := &r.plan.Spec.Plan
	record := evidence.Record{
		Kind: kind, At: at, Chain: evidence.Chain{UID: plan.Policy.UID},
		Policy: &evidence.Policy{Name: plan.Policy.Name, UID: plan.Policy.UID, Generation: plan.Policy.Generation, Digest: plan.Policy.Digest},
		Plan: &evidence.Plan{
			Namespace: r.plan.Namespace, Name: r.plan.Name, UID: string(r.plan.UID), Digest: PlanDigest(plan),
		},
		Requester: plan.Requester, InitiatedBy: plan.InitiatedBy, CorrelationID: plan.CorrelationID, DriftReportID: plan.DriftReportID,
	}
	if r.plan.Spec.Control.Verb == v1alpha1.PlanExecute {
		record.Approver = r.plan.Spec.Control.RequestedBy
	}
	return record
}

// PlanDigest is the SHA-256 of the JSON of a plan's immutable part.
func PlanDigest(plan *v1alpha1.PlannedRemediation) string { return evidence.Digest(encodePlan(plan)) }

// encodePlan returns the JSON of a plan's immutable part.
func encodePlan(plan *v1alpha1.PlannedRemediation) []byte {
	raw, err := json.Marshal(plan)
	if err != nil {
		panic("a plan cannot be encoded: " + err.Error()) // strings, numbers and times always can
	}
	return raw
}

func severityOf(s *v1alpha1.Severity) *evidence.Severity {
	out := &evidence.Severity{Level: string(s.Level), Score: s.Score}
	for _, f := range s.Factors {
		out.Factors = append(out.Factors, evidence.Factor{Name: f.Name, Score: f.Score, Weight: f.Weight})
	}
	return out
}

func originOf(o v1alpha1.ResultOrigin) evidence.Origin {
	switch o {
	case v1alpha1.ResultResponse:
		return evidence.OriginAPIResponse
	case v1alpha1.ResultRecovered:
		return evidence.OriginRecovered
	}
	return evidence.OriginRecovered // of the two, the one that claims less
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// recordFence leaves a record of a fence.
func (r *run) recordFence(ctx context.Context, index int32, write protocol.Write, origin evidence.Origin) error {
	step, target := &r.plan.Status.Steps[index], r.target(index)
	record := r.common(evidence.KindFence, step.Intent.StorageTime.Time)
	record.Occurrence = step.Attempts
	record.Subject = evidence.Subject{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: r.plan.Namespace, Name: target.Name,
		UID: target.UID, Hash: write.Hash,
	}
	record.Step = &evidence.Step{Index: index, Action: string(target.Action)}
	record.Result = evidence.Result{ResourceVersion: write.ResourceVersion, Hash: write.Hash, Origin: origin, At: step.Intent.StorageTime.Time}
	_, err := r.tell(ctx, record)
	return err
}

// recordFoundFence leaves the record of a fence whose writer died, or did not
// hear the answer.
func (r *run) recordFoundFence(ctx context.Context, index int32) {
	step, m := &r.plan.Status.Steps[index], r.material(index)
	if step.State != v1alpha1.StepIntent || step.Intent == nil || step.Fence != "" {
		return
	}
	own := m.metadata.Labels[evidence.LabelFence] == string(r.plan.UID)+"."+strconv.Itoa(int(index))
	if !own || m.metadata.Annotations[repair.AnnotationFenced] != step.Intent.ResourceVersion {
		return
	}
	hash, err := m.standard.Hash(m.raw, r.target(index))
	if err != nil {
		return
	}
	// That it fails is found when the chain is joined with the audit log; the step
	// itself cannot end without a record.
	_ = r.recordFence(ctx, index, protocol.Write{ResourceVersion: m.metadata.ResourceVersion, Hash: hash}, evidence.OriginRecovered)
}

// decided leaves a record of a decision about the plan before it is stored. Of the
// same decision there is one record, however often it is tried to store it.
func (r *run) decided(ctx context.Context, next *v1alpha1.RemediationPlanStatus) error {
	record, ok := r.decisionRecord(next)
	if err := r.nameBeginning(ctx, next); err != nil || !ok || next.Phase == v1alpha1.PlanCreated {
		return err
	}
	if err := r.withdraw(ctx); err != nil { // before the next decision takes the place of the last one
		return err
	}
	at, err := r.tell(ctx, record)
	if err == nil {
		next.Decision = r.decision(next.Decision, at)
	}
	return err
}

// nameBeginning leaves the record of the beginning of a plan. The status that begins the plan names no
// record, so that the grant of the first step keeps the head of that record. The next phase names the
// record, whoever wrote it. A takeover and a brake do not need the store: a takeover names no
// record, and what a brake leads to is a decision with a record of its own.
func (r *run) nameBeginning(ctx context.Context, next *v1alpha1.RemediationPlanStatus) error {
	before := r.stored()
	begins := before.Phase == "" && next.Phase == v1alpha1.PlanCreated
	if !begins && !isUnnamed(before) {
		return nil
	}
	at, err := r.note(ctx, r.recordDecision(evidence.KindPlanCreated, v1alpha1.PlanCreated, ""))
	switch {
	case begins:
		return err
	case next.Phase == v1alpha1.PlanCreated, err != nil && next.Phase == v1alpha1.PlanSealing:
		return nil // the next phase needs the record, and tries again
	case err != nil:
		return err
	}
	next.Decision = &v1alpha1.PlanDecision{StepEvidence: named(at)}
	return nil
}

// isUnnamed says that a status is still to name the record of the beginning. A plan that is being ended, and
// has not started, was braked while the store was out. Other plans without a decision were begun by
// an earlier release.
func isUnnamed(status *v1alpha1.RemediationPlanStatus) bool {
	braked := status.Phase == v1alpha1.PlanSealing && status.StartTime == nil
	return status.Decision == nil && (braked || status.Phase == v1alpha1.PlanCreated)
}

// namesRecord says that a status names a record, whose head has to be kept before.
func namesRecord(status *v1alpha1.RemediationPlanStatus) bool {
	return status.Decision != nil || slices.ContainsFunc(status.Steps, func(step v1alpha1.PlanStep) bool {
		return step.Evidence != nil || step.Standby != nil
	})
}

// recordDecision is the record of a decision that led to a phase.
func (r *run) recordDecision(kind evidence.Kind, phase v1alpha1.PlanPhase, reason string) evidence.Record {
	record := r.common(kind, r.Time.Now().Truncate(time.Second))
	record.Subject = r.subject()
	record.Result = evidence.Result{State: string(phase), Reason: reason}
	return record
}

// decisionRecord is the record of the decision that a new status stands for, if any.
func (r *run) decisionRecord(next *v1alpha1.RemediationPlanStatus) (evidence.Record, bool) {
	kind, reason, ok := decisionOf(r.plan.Spec.Control.Verb, r.stored(), next)
	if !ok {
		return evidence.Record{}, false
	}
	record := r.recordDecision(kind, next.Phase, reason)
	record.Approver = cmp.Or(record.Approver, decidedBy(kind, next, &r.plan.Spec.Control))
	switch {
	case kind == evidence.KindPlanPaused, kind == evidence.KindPlanResumed:
		// Each needs a change of the spec, so the generation tells them apart.
		record.Occurrence = int32(min(r.plan.Generation, math.MaxInt32)) //nolint:gosec // bounded
	case next.Phase == v1alpha1.PlanScheduled:
		record.Occurrence = 1 // the other way to wait is told by a record of the same kind
	case kind == evidence.KindPlanFinished:
		record.Occurrence = endOccurrence(next.Phase)
	}
	return record, true
}

// endOccurrence tells the ends of a plan apart, which records of one kind tell: another executor may
// decide otherwise before an end is stored.
func endOccurrence(phase v1alpha1.PlanPhase) int32 {
	ends := []v1alpha1.PlanPhase{
		v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped,
	}
	return int32(max(0, slices.Index(ends, phase))) //nolint:gosec // few
}

// subject is the plan, for a record of a decision about it.
func (r *run) subject() evidence.Subject {
	return evidence.Subject{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPlan",
		Namespace: r.plan.Namespace, Name: r.plan.Name, UID: string(r.plan.UID), Hash: PlanDigest(&r.plan.Spec.Plan),
	}
}

// decidedBy names the person who decided; empty when none did.
func decidedBy(kind evidence.Kind, next *v1alpha1.RemediationPlanStatus, control *v1alpha1.PlanControl) string {
	switch kind {
	case evidence.KindPlanPaused, evidence.KindPlanCanceled, evidence.KindPlanHalted:
		return next.EndedBy
	case evidence.KindPlanResumed:
		return control.RequestedBy
	default: // a plan decides the rest by itself
		return ""
	}
}

// decisionOf says which decision a new status stands for, if any. A plan comes to
// each of them once, but for a pause and its end; that it waits is told the first
// time, whatever else it waits for later.
func decisionOf(asked v1alpha1.PlanVerb, before, next *v1alpha1.RemediationPlanStatus) (kind evidence.Kind, reason string, ok bool) {
	if before.Phase == next.Phase {
		return "", "", false
	}
	switch next.Phase {
	case v1alpha1.PlanCreated:
		return evidence.KindPlanCreated, "", true
	case v1alpha1.PlanDeferred, v1alpha1.PlanScheduled:
		return evidence.KindPlanDeferred, string(next.Phase), before.Phase == v1alpha1.PlanCreated
	case v1alpha1.PlanRunning:
		if before.Phase == v1alpha1.PlanPaused {
			return evidence.KindPlanResumed, "", true
		}
		return evidence.KindPlanApproved, "", asked == v1alpha1.PlanExecute && before.StartTime == nil
	case v1alpha1.PlanPaused:
		return evidence.KindPlanPaused, "", true
	case v1alpha1.PlanCanceled:
		if asked == v1alpha1.PlanCancel {
			return evidence.KindPlanCanceled, "Stopped", true
		}
		return evidence.KindPlanHalted, "Stopped", true
	case v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
		return evidence.KindPlanFinished, string(next.Phase), true
	case v1alpha1.PlanSealing:
	}
	return "", "", false
}
