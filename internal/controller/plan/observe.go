// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// maxNote is the API server's limit of an Event's note, in bytes.
const maxNote = 1024

// Observer tells what was stored: in the log, in metrics, as Events, and to the
// channels of the policy. It decides nothing, and nothing waits for it.
type Observer struct {
	Log      logr.Logger
	Recorder events.EventRecorder
	Metrics  *Metrics
	// Policies is the cache; a policy that is gone tells nobody.
	Policies client.Reader
	// Notify is nil when nobody is told.
	Notify func(*v1alpha1.RemediationPolicy, notify.Event)
	Time   exec.Time

	mu sync.Mutex
	// breakers are the states that were told last, by ledger and policy.
	breakers map[[2]string]v1alpha1.BreakerState
	// ends are the plans whose end was told and whose status does not say so yet.
	ends map[types.UID]bool
}

// Stored implements exec.Observer.
func (o *Observer) Stored(plan *v1alpha1.RemediationPlan, before *v1alpha1.RemediationPlanStatus) {
	for i := range plan.Status.Steps {
		var was v1alpha1.StepState
		if i < len(before.Steps) {
			was = before.Steps[i].State
		}
		if step := &plan.Status.Steps[i]; step.State != was {
			o.step(plan, step)
		}
	}
	if beginsToWait(&plan.Status, before) {
		o.Metrics.limited.WithLabelValues(plan.Spec.Plan.Policy.Name).Inc()
	}
	switch {
	case protocol.Final(before.Phase):
		o.forget(plan.UID) // the status says that the end is told
	case plan.Status.Phase != before.Phase && !protocol.Final(plan.Status.Phase):
		o.phase(plan, before)
	}
}

// beginsToWait says that something holds a plan back that did not before. A plan that is
// scheduled waits for its time alone.
func beginsToWait(now, before *v1alpha1.RemediationPlanStatus) bool {
	return now.DeferralReason != "" && now.Phase != v1alpha1.PlanScheduled && (before.DeferralReason == "" || before.Phase == v1alpha1.PlanScheduled)
}

// Ended implements exec.Observer. One process tells an end once, however often it cannot
// note that in the status.
func (o *Observer) Ended(plan *v1alpha1.RemediationPlan) {
	if !o.first(plan.UID) {
		return
	}
	planned, status := &plan.Spec.Plan, &plan.Status
	o.Metrics.plans.WithLabelValues(planned.EnvironmentName, planned.Policy.Name, telemetry.SpellWord(string(status.Phase))).Inc()
	if status.StartTime != nil {
		o.Metrics.planDuration.WithLabelValues(planned.EnvironmentName, telemetry.SpellWord(string(planned.Strategy))).Observe(between(status.StartTime, status.CompletionTime).Seconds())
	}
	if kind, tells := endOf(status.Phase); tells {
		o.told(context.Background(), plan, kind, "")
	}
	o.logPlan("remediation.plan."+telemetry.SpellWord(string(status.Phase)), plan)
	if status.Phase != v1alpha1.PlanSucceeded { // each of its targets has an Event, and that Event names the plan
		o.eventOnPlan(plan)
	}
}

// first says whether the end of a plan is to be told for the first time.
func (o *Observer) first(plan types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends == nil {
		o.ends = map[types.UID]bool{}
	}
	was := o.ends[plan]
	o.ends[plan] = true
	return !was
}

func (o *Observer) forget(plan types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ends, plan)
}

func (o *Observer) step(plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) {
	planned, target := &plan.Spec.Plan, &plan.Spec.Plan.Targets[step.Index]
	switch step.State {
	case v1alpha1.StepIntent:
		o.Metrics.wait.WithLabelValues(planned.EnvironmentName, telemetry.SpellWord(string(target.Severity.Level))).
			Observe(max(0, o.Time.Now().Sub(target.FirstSeenTime.Time)).Seconds())
		o.logStep("remediation.target.started", plan, step)
	case v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
		o.Metrics.targets.WithLabelValues(planned.EnvironmentName, telemetry.SpellWord(string(target.Action)), statusOf(step)).Inc()
		if step.StartTime != nil {
			o.Metrics.targetDuration.WithLabelValues(planned.EnvironmentName, telemetry.SpellWord(string(target.Action))).Observe(between(step.StartTime, step.CompletionTime).Seconds())
		}
		o.logStep("remediation.target.completed", plan, step)
		if step.State == v1alpha1.StepFailed {
			o.logStep("remediation.target.failed", plan, step)
		}
		o.eventOnTarget(plan, step, target)
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepApplied:
	}
}

// logStep writes a line with the keys of the seed's structured log, in its
// spelling.
func (o *Observer) logStep(event string, plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) {
	planned, target := &plan.Spec.Plan, &plan.Spec.Plan.Targets[step.Index]
	current := target.DriftedHash
	if step.Result != nil {
		current = step.Result.Hash
	}
	o.Log.Info(event, "event", event,
		"plan_id", string(plan.UID), "plan", plan.Namespace+"/"+plan.Name, "policy", planned.Policy.Name,
		"target_id", target.UID, "target", target.Kind+" "+plan.Namespace+"/"+target.Name, "step", step.Index,
		"environment", planned.EnvironmentName, "action", telemetry.SpellWord(string(target.Action)), "drift_type", telemetry.SpellWord(string(target.DriftType)),
		"severity", telemetry.SpellWord(string(target.Severity.Level)), "duration_ms", between(step.StartTime, step.CompletionTime).Milliseconds(),
		"status", statusOf(step), "reason", string(step.Reason), "previous_digest", target.DriftedHash, "current_digest", current,
		"initiated_by", planned.InitiatedBy, "correlation_id", planned.CorrelationID, "drift_report_id", planned.DriftReportID)
}

// statusOf is a step's state as the seed calls it.
func statusOf(step *v1alpha1.PlanStep) string {
	switch step.State {
	case v1alpha1.StepVerified:
		return "succeeded"
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied,
		v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
	}
	return telemetry.SpellWord(string(step.State))
}

func (o *Observer) eventOnTarget(plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep, target *v1alpha1.PlanTarget) {
	kind := corev1.EventTypeNormal
	if step.State == v1alpha1.StepFailed {
		kind = corev1.EventTypeWarning
	}
	object := &corev1.ObjectReference{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: plan.Namespace, Name: target.Name, UID: types.UID(target.UID),
	}
	o.Recorder.Eventf(object, plan, kind, "Remediation"+string(step.State), string(target.Action), "%s",
		noted("plan "+plan.Name+": "+step.Message))
}

// noted is the note of an Event, which the API server bounds to 1,024 bytes.
func noted(text string) string { return diff.TruncateText(diff.Printable(text), maxNote) }

func (o *Observer) phase(plan *v1alpha1.RemediationPlan, before *v1alpha1.RemediationPlanStatus) {
	status := &plan.Status
	name := "remediation.plan." + telemetry.SpellWord(string(status.Phase))
	switch {
	case status.Phase == v1alpha1.PlanRunning && before.StartTime == nil:
		name = "remediation.plan.started"
		o.told(context.Background(), plan, notify.PlanStarted, "")
	case status.Phase == v1alpha1.PlanRunning && before.Phase == v1alpha1.PlanPaused:
		name = "remediation.plan.resumed"
		// A pause and its end are changes of the spec, which tell one from another.
		o.told(context.Background(), plan, notify.PlanStarted, "resumed-"+strconv.FormatInt(plan.Generation, 10))
	}
	o.logPlan(name, plan)
	if !toldElsewhere(before.Phase, status.Phase) {
		o.eventOnPlan(plan)
	}
}

// toldElsewhere says that another Event tells of a phase: the assessor has told that the plan
// was made, and a plan that begins at once is told of by its targets and its end.
func toldElsewhere(before, now v1alpha1.PlanPhase) bool {
	return now == v1alpha1.PlanCreated || now == v1alpha1.PlanRunning && before == v1alpha1.PlanCreated
}

func (o *Observer) logPlan(name string, plan *v1alpha1.RemediationPlan) {
	planned, status := &plan.Spec.Plan, &plan.Status
	o.Log.Info(name, "event", name, "plan_id", string(plan.UID), "plan", plan.Namespace+"/"+plan.Name,
		"policy", planned.Policy.Name, "environment", planned.EnvironmentName, "strategy", telemetry.SpellWord(string(planned.Strategy)),
		"status", telemetry.SpellWord(string(status.Phase)), "reason", cmp.Or(status.DeferralReason, status.EndedReason),
		"duration_ms", between(status.StartTime, status.CompletionTime).Milliseconds(),
		"initiated_by", planned.InitiatedBy, "ended_by", status.EndedBy,
		"targets", len(planned.Targets), "succeeded", status.Counts.Succeeded, "failed", status.Counts.Failed, "skipped", status.Counts.Skipped,
		"correlation_id", planned.CorrelationID, "drift_report_id", planned.DriftReportID)
}

func (o *Observer) eventOnPlan(plan *v1alpha1.RemediationPlan) {
	kind, status := corev1.EventTypeNormal, &plan.Status
	switch status.Phase {
	case v1alpha1.PlanFailed, v1alpha1.PlanPartialSuccess, v1alpha1.PlanSkipped:
		kind = corev1.EventTypeWarning
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused,
		v1alpha1.PlanSealing, v1alpha1.PlanSucceeded, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded:
	}
	note := "the plan is " + string(status.Phase)
	if why := cmp.Or(status.DeferralReason, status.EndedReason); why != "" {
		note += ": " + why
	}
	if status.EndedBy != "" {
		note += ", asked for by " + status.EndedBy
	}
	o.Recorder.Eventf(plan, nil, kind, "Plan"+string(status.Phase), "Remediate", "%s", noted(note))
}

// told hands an event to the policy's channels. Transition tells it from others of
// its type.
func (o *Observer) told(ctx context.Context, plan *v1alpha1.RemediationPlan, kind notify.EventType, transition string) {
	if o.Notify == nil {
		return
	}
	var policy v1alpha1.RemediationPolicy
	if err := o.Policies.Get(ctx, types.NamespacedName{Name: plan.Spec.Plan.Policy.Name}, &policy); err != nil {
		return
	}
	at := o.Time.Now()
	if end := plan.Status.CompletionTime; end != nil {
		at = end.Time // it may be told later
	}
	e := NotificationOf(plan, kind, at)
	e.Transition = transition
	o.Notify(&policy, e)
}

// NotificationOf is what is told about a plan.
func NotificationOf(plan *v1alpha1.RemediationPlan, kind notify.EventType, now time.Time) notify.Event {
	planned, counts := &plan.Spec.Plan, plan.Status.Counts
	e := notify.Event{
		Type: kind, Plan: notify.PlanRef{Namespace: plan.Namespace, Name: plan.Name, UID: string(plan.UID)},
		Policy: planned.Policy.Name, Environment: planned.EnvironmentName,
		Counts: notify.Counts{
			Total: len(planned.Targets), Succeeded: int(counts.Succeeded), Failed: int(counts.Failed), Skipped: int(counts.Skipped),
		},
		InitiatedBy: planned.InitiatedBy, CorrelationID: planned.CorrelationID, Time: now,
	}
	if d := plan.Status.Decision; d != nil {
		e.Evidence = &notify.Record{Chain: planned.Policy.UID, Sequence: d.Sequence, Digest: d.Digest}
	}
	for i := range planned.Targets {
		// The worst comes first, unless a person made the plan.
		if level := planned.Targets[i].Severity.Level; severity.CompareLevels(level, e.Severity) > 0 {
			e.Severity = level
		}
		t := notify.Target{Kind: planned.Targets[i].Kind, Namespace: plan.Namespace, Name: planned.Targets[i].Name}
		if i < len(plan.Status.Steps) {
			t.Reason = strings.TrimSpace(string(plan.Status.Steps[i].State) + " " + string(plan.Status.Steps[i].Reason))
			e.Reason = cmp.Or(e.Reason, reasonOf(plan, &plan.Status.Steps[i]))
		}
		e.Targets = append(e.Targets, t)
	}
	return e
}

// reasonOf is what people read of a step that did not do what the plan was for; empty
// for any other step.
func reasonOf(plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep) string {
	if step.State == v1alpha1.StepFailed || plan.Status.Phase == v1alpha1.PlanSkipped && protocol.Hindered(step) {
		return step.Message
	}
	return ""
}

// LedgerStored implements exec.Observer. How full a ledger is, Backlog tells.
func (o *Observer) LedgerStored(l *v1alpha1.RemediationLedger) {
	for i := range l.Status.Breakers {
		if b := &l.Status.Breakers[i]; o.turned(l.Name, b) {
			o.breaker(l, b)
		}
	}
}

// turned says whether a breaker has another state than the one told last. One that
// is met closed is no news.
func (o *Observer) turned(ledger string, b *v1alpha1.LedgerBreaker) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.breakers == nil {
		o.breakers = map[[2]string]v1alpha1.BreakerState{}
	}
	key := [2]string{ledger, b.PolicyUID}
	was := cmp.Or(o.breakers[key], v1alpha1.BreakerClosed)
	o.breakers[key] = b.State
	return b.State != was
}

func (o *Observer) breaker(l *v1alpha1.RemediationLedger, b *v1alpha1.LedgerBreaker) {
	var policies v1alpha1.RemediationPolicyList
	if err := o.Policies.List(context.Background(), &policies); err != nil {
		o.Log.Error(err, "listing policies to tell of their breakers")
		return
	}
	i := slices.IndexFunc(policies.Items, func(p v1alpha1.RemediationPolicy) bool { return string(p.UID) == b.PolicyUID })
	if i < 0 {
		return
	}
	policy, name := &policies.Items[i], "remediation.breaker."+telemetry.SpellWord(string(b.State))
	kind, level := corev1.EventTypeNormal, slog.LevelInfo
	if b.State == v1alpha1.BreakerOpen {
		kind, level = corev1.EventTypeWarning, slog.LevelWarn
	}
	// logr has no level for warnings.
	slog.New(logr.ToSlogHandler(o.Log)).Log(context.Background(), level, name,
		"event", name, "policy", policy.Name, "ledger", l.Name, "status", telemetry.SpellWord(string(b.State)), "failures", b.Failures)
	o.Recorder.Eventf(policy, nil, kind, "Breaker"+string(b.State), "Remediate", "%s",
		noted("the circuit breaker is "+string(b.State)+" after "+strconv.Itoa(int(b.Failures))+" failures in a row"))
}

// between two times, of which either may not be known.
func between(from, to *metav1.Time) time.Duration {
	if from == nil || to == nil {
		return 0
	}
	return max(0, to.Sub(from.Time))
}
