// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// tell logs what was stored.
func (r *Reconciler) tell(s *subject) {
	before, after := &s.assessment.Status, &s.next.Status
	if before.Schedule == nil && after.Schedule != nil {
		r.log(s, "effectiveness.assessment.scheduled", s.scheduleWords()...)
	}
	if after.Integrity != before.Integrity && after.Integrity != v1alpha1.IntegrityUnknown {
		r.log(s, "effectiveness.hash.computed", s.hashWords()...)
	}
	if c := componentIn(after, v1alpha1.ComponentHealth); c != nil && c.Health != nil && !after.AskedTime.Equal(before.AskedTime) {
		r.log(s, "effectiveness.health.assessed", healthWords(c)...)
	}
	if c := newlyAssessed(before, after, v1alpha1.ComponentAlerts); c != nil {
		r.log(s, "effectiveness.alert.assessed", alertWords(c)...)
	}
	if after.AlertDecay == v1alpha1.DecayActive && before.AlertDecay == "" {
		r.log(s, "effectiveness.alert_decay.detected")
	}
	if c := newlyAssessed(before, after, v1alpha1.ComponentMetrics); c != nil {
		r.log(s, "effectiveness.metrics.assessed", metricWords(c)...)
	}
	if after.Reason != "" && before.Reason == "" {
		r.log(s, "effectiveness.assessment.completed", s.endWords()...)
	}
}

func (r *Reconciler) log(s *subject, event string, more ...any) {
	spec := &s.next.Spec
	words := []any{
		"event", event, "assessment", s.next.Namespace + "/" + s.next.Name, "assessment_id", string(s.next.UID),
		"target", spec.Target.Kind + " " + s.next.Namespace + "/" + spec.Target.Name, "target_id", spec.Target.UID,
		"policy", spec.Policy.Name, "action", telemetry.SpellWord(string(spec.Action)), "correlation_id", spec.CorrelationID,
	}
	if of := spec.Subject.Plan; of != nil {
		words = append(words, "plan", s.next.Namespace+"/"+of.Name, "step", of.Step)
	}
	if of := spec.Subject.Release; of != nil {
		words = append(words, "release", s.next.Namespace+"/"+of.Name, "run", of.Run)
	}
	r.Log.Info(event, append(words, more...)...)
}

func (s *subject) scheduleWords() []any {
	schedule := s.next.Status.Schedule
	return []any{
		"validity_deadline", spell(schedule.DeadlineTime.Time), "propagated_at", spell(schedule.PropagatedTime.Time),
		"prometheus_check_after", spell(schedule.StabilizedTime.Time), "alertmanager_check_after", spell(schedule.AlertsTime.Time),
	}
}

func (s *subject) hashWords() []any {
	spec, status := &s.next.Spec, &s.next.Status
	return []any{
		"pre_remediation_spec_hash", spec.PreHash, "post_remediation_spec_hash", spec.PostHash, "current_spec_hash", status.CurrentHash,
		"hash_match", spec.PreHash == spec.PostHash, "integrity", telemetry.SpellWord(string(status.Integrity)),
	}
}

func healthWords(c *v1alpha1.AssessedComponent) []any {
	h := c.Health
	return []any{
		"score", scoreOf(c.Score), "total_replicas", h.Desired, "pod_running", h.Pods, "readiness_pass", h.Ready, "crash_loops", h.CrashLooping,
		"oom_killed", h.OutOfMemory, "restart_delta", h.Restarted, "message", c.Message,
	}
}

// newlyAssessed returns a component that was assessed with another result than before; nil otherwise.
func newlyAssessed(before, after *v1alpha1.EffectivenessAssessmentStatus, name v1alpha1.EffectComponent) *v1alpha1.AssessedComponent {
	c := componentIn(after, name)
	if c == nil || c.State != v1alpha1.ComponentAssessed || equality.Semantic.DeepEqual(c, componentIn(before, name)) {
		return nil
	}
	return c
}

func alertWords(c *v1alpha1.AssessedComponent) []any {
	words := []any{"score", scoreOf(c.Score), "alert_resolved", c.Effect == v1alpha1.EffectFor, "message", c.Message}
	if m := c.Alerts; m != nil {
		words = append(words, "active_count", m.Firing, "before_count", m.Before, "resolved_count", m.Resolved, "new_count", m.New)
	}
	return words
}

// metricWords have no values of metrics: the assessment has.
func metricWords(c *v1alpha1.AssessedComponent) []any {
	assessed := 0
	for i := range c.Metrics {
		if c.Metrics[i].Score != nil {
			assessed++
		}
	}
	return []any{"score", scoreOf(c.Score), "metrics", len(c.Metrics), "metrics_assessed", assessed, "message", c.Message}
}

func (s *subject) endWords() []any {
	status := &s.next.Status
	var assessed []string
	for i := range status.Components {
		if status.Components[i].State == v1alpha1.ComponentAssessed {
			assessed = append(assessed, telemetry.SpellWord(string(status.Components[i].Name)))
		}
	}
	words := []any{
		"reason", telemetry.SpellWord(string(status.Reason)), "verdict", telemetry.SpellWord(string(status.Verdict)), "score", scoreOf(status.Score),
		"components_assessed", assessed, "completed_at", spell(status.CompletionTime.Time), "message", status.Message,
	}
	if written := s.next.Spec.WrittenTime; written != nil {
		words = append(words, "assessment_duration_seconds", status.CompletionTime.Sub(written.Time).Seconds())
	}
	return words
}

func componentIn(status *v1alpha1.EffectivenessAssessmentStatus, name v1alpha1.EffectComponent) *v1alpha1.AssessedComponent {
	i := slices.IndexFunc(status.Components, func(c v1alpha1.AssessedComponent) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &status.Components[i]
}

// scoreOf is a score in a log; -1 for none.
func scoreOf(score *int32) int32 {
	if score == nil {
		return -1
	}
	return *score
}

func spell(t time.Time) string { return t.UTC().Format(time.RFC3339) }
