// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Reasons of Events about a policy.
const (
	reasonPlanCreated = "PlanCreated"
	reasonEscalated   = "RemediationEscalated"
	// action is what the assessor did when it made an Event.
	action = "Plan"
	// maxNote is the API server's limit of an Event's note, in bytes.
	maxNote = 1024
	// maxNamed bounds how many objects a note names.
	maxNamed = 5
)

// tell makes Events, log lines and notifications of what was done.
func (r *Reconciler) tell(s *subject) {
	for _, plan := range s.created {
		r.tellCreated(s, plan)
	}
	if s.acts() {
		r.escalate(s)
	}
}

func (r *Reconciler) tellCreated(s *subject, plan *v1alpha1.RemediationPlan) {
	p := &plan.Spec.Plan
	r.Log.Info("remediation.plan.created", "event", "remediation.plan.created",
		"plan_id", string(plan.UID), "plan", plan.Namespace+"/"+plan.Name, "policy", s.policy.Name,
		"environment", p.EnvironmentName, "trigger", string(p.Trigger), "strategy", string(p.Strategy),
		"targets", len(p.Targets), "left_out", p.LeftOutTotal, "severity", strings.ToLower(string(p.Targets[0].Severity.Level)),
		"drift_type", telemetry.SpellWord(string(p.Targets[0].DriftType)), "pre_remediation_spec_hash", p.Targets[0].DriftedHash,
		"initiated_by", p.InitiatedBy, "correlation_id", p.CorrelationID, "drift_report_id", p.DriftReportID,
		"detection_to_plan_ms", s.now.Sub(p.Targets[0].FirstSeenTime.Time).Milliseconds())
	r.Metrics.created(plan)
	note := fmt.Sprintf("%s/%s: %s", plan.Namespace, plan.Name, names(plan))
	if p.ScheduledTime != nil {
		note += ", scheduled for " + p.ScheduledTime.UTC().Format("2006-01-02T15:04:05Z")
	}
	waits := ""
	if planner.WaitsForPerson(p) {
		waits = "it waits for a person: " + planner.ExecuteCommand(plan.Namespace, plan.Name)
		note += "; " + waits
	}
	if !r.beginsAtOnce(p) {
		r.Recorder.Eventf(s.policy, plan, corev1.EventTypeNormal, reasonPlanCreated, action, "%s", diff.TruncateText(note, maxNote))
	}
	if r.Notifier == nil {
		return
	}
	e := notify.Event{
		Type: notify.PlanCreated, Plan: notify.PlanRef{Namespace: plan.Namespace, Name: plan.Name, UID: string(plan.UID)},
		Policy: s.policy.Name, Environment: p.EnvironmentName, Severity: p.Targets[0].Severity.Level,
		Counts: notify.Counts{Total: len(p.Targets)}, Reason: waits, Waiting: waits != "",
		InitiatedBy: p.InitiatedBy, CorrelationID: p.CorrelationID, Time: s.now,
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		e.Targets = append(e.Targets, notify.Target{Kind: t.Kind, Namespace: plan.Namespace, Name: t.Name, Reason: string(t.DriftType)})
	}
	r.Notifier.Notify(e)
}

// beginsAtOnce says that an executor begins a plan without a person and without a time. The executor
// makes an Event about what such a plan waits for, or about each of its targets.
func (r *Reconciler) beginsAtOnce(p *v1alpha1.PlannedRemediation) bool {
	return r.Executor != "" && p.Request == nil && p.ScheduledTime == nil && !planner.WaitsForPerson(p)
}

func names(plan *v1alpha1.RemediationPlan) string {
	var out []string
	for i := range plan.Spec.Plan.Targets {
		out = append(out, plan.Spec.Plan.Targets[i].Kind+" "+plan.Spec.Plan.Targets[i].Name)
	}
	return strings.Join(out, ", ")
}

// escalation is a drift that a person is told of, and why.
type escalation struct {
	drift   *planner.Drift
	reason  planner.Reason // empty under a policy that only notifies
	message string
}

// id of an escalation, by which it is told once. It is a digest, because the status of the
// policy keeps it.
func (e escalation) id() string {
	what := fmt.Sprintf("%s/%s %s %d %s", e.drift.Namespace, e.drift.Baseline, e.drift.DriftedHash, e.drift.FirstSeen.Unix(), e.message)
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:maxID/2])
}

// maxID is how many characters an id has.
const maxID = 32

// level of the drift, by which the escalation is routed.
func (e escalation) level() v1alpha1.SeverityLevel { return e.drift.Severity.Level }

// escalations are all of them, the worst first: what is left to people, what people are told
// of before it is put back, and all that is eligible under a policy that only notifies.
func (s *subject) escalations() []escalation {
	var out []escalation
	for i := range s.out.LeftOut {
		if l := &s.out.LeftOut[i]; l.Reason.Escalates() {
			out = append(out, escalation{l.Drift, l.Reason, l.Message})
		}
	}
	for _, d := range s.out.Notify {
		out = append(out, escalation{d, "", "the policy only notifies"})
	}
	slices.SortStableFunc(out, func(a, b escalation) int { return severity.Compare(b.drift.Severity, a.drift.Severity) })
	return out
}

// escalate tells people of each drift that is left to them, or is put back later, and again
// when the drift has become more severe; those that came up together are told together.
func (r *Reconciler) escalate(s *subject) {
	news := r.told.news(s.policy, s.escalations(), s.now)
	if len(news) == 0 {
		return
	}
	first := news[0].drift
	r.Log.Info("remediation.plan.escalated", "event", "remediation.plan.escalated",
		"policy", s.policy.Name, "environment", s.policy.Spec.EnvironmentName, "targets", len(news),
		"severity", strings.ToLower(string(first.Severity.Level)), "reason", news[0].message)
	var named []string
	for _, e := range news[:min(len(news), maxNamed)] {
		named = append(named, fmt.Sprintf("%s %s/%s (%s)", e.drift.Target.Kind, e.drift.Namespace, e.drift.Target.Name, e.message))
	}
	note := fmt.Sprintf("%s %s: %s", plural.Of(len(news), "drifted object"), purpose(news), strings.Join(named, "; "))
	if command := s.requestCommand(news); command != "" {
		note += "; to remediate them now: " + command
	}
	r.Recorder.Eventf(s.policy, nil, corev1.EventTypeWarning, reasonEscalated, action, "%s", diff.TruncateText(diff.Printable(note), maxNote))
	if r.Notifier != nil {
		r.Notifier.Notify(escalated(s, news))
	}
}

// purpose says why people are told of drift.
func purpose(news []escalation) string {
	if slices.ContainsFunc(news, func(e escalation) bool { return e.reason != planner.ReasonNotifyStage }) {
		return plural.Verb(len(news), "needs", "need") + " a person"
	}
	return plural.Verb(len(news), "is", "are") + " remediated later"
}

// requestCommand returns the command by which a person has drift put back now that the
// policy does not: the first of it that a request passes for, and what is beside that in the
// namespace. It is empty without such drift.
func (s *subject) requestCommand(news []escalation) string {
	var drifts []*planner.Drift
	for _, e := range news {
		if len(drifts) == maxNamed || len(drifts) > 0 && drifts[0].Namespace != e.drift.Namespace {
			continue
		}
		if planner.RequestPasses(&s.gathered.Input, e.drift) {
			drifts = append(drifts, e.drift)
		}
	}
	if len(drifts) == 0 {
		return ""
	}
	return planner.RemediateCommand(s.policy.Name, drifts...)
}

// escalated is the notification. It stands for no plan, so the policy is named in
// its place, and what it is about tells one such event from another.
func escalated(s *subject, news []escalation) notify.Event {
	keys := make([]string, 0, len(news))
	e := notify.Event{
		Type: notify.PlanEscalated, Plan: notify.PlanRef{Name: s.policy.Name, UID: string(s.policy.UID)},
		Policy: s.policy.Name, Environment: s.policy.Spec.EnvironmentName, Severity: news[0].drift.Severity.Level,
		Counts: notify.Counts{Total: len(news)}, Reason: news[0].message, InitiatedBy: planner.InitiatedByItself, Time: s.now,
	}
	if command := s.requestCommand(news); command != "" {
		e.Reason += "; to remediate it now: " + command
	}
	for _, n := range news {
		keys = append(keys, n.id()+" "+string(n.level()))
		if len(e.Targets) < notify.MaxTargets {
			e.Targets = append(e.Targets, notify.Target{
				Kind: n.drift.Target.Kind, Namespace: n.drift.Namespace, Name: n.drift.Target.Name, Reason: n.message,
			})
		}
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))
	e.Transition = hex.EncodeToString(sum[:16])
	return e
}
