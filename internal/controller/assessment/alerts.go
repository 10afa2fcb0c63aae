// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// The bounds of what is stored of alerts.
const (
	maxBefore      = 32
	maxSideEffects = 16
	maxSideEffect  = 256
)

// Alerts asks for the alerts about a target.
type Alerts struct {
	Sources *effectiveness.Sources
	// Pods lists the pods of a target: an alert can be about one of them.
	Pods *Health
}

// Ask implements [Source].
func (x *Alerts) Ask(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) Answer {
	q, found, why := x.ask(ctx, a, sight)
	if why != "" {
		return notAnswered(v1alpha1.ComponentAlerts, why)
	}
	component, outcome := effect.JudgeAlerts(q.Before, found, q.WrittenTime)
	answer := Answer{AssessedComponent: StoreComponent(v1alpha1.ComponentAlerts, component), Decaying: outcome.Decaying}
	for _, alert := range found.Beside {
		answer.SideEffects = append(answer.SideEffects, diff.TruncateText(diff.Printable("alert "+alert.Name+" began to fire in the namespace"), maxSideEffect))
	}
	slices.Sort(answer.SideEffects)
	if answer.SideEffects = slices.Compact(answer.SideEffects); len(answer.SideEffects) > maxSideEffects {
		answer.SideEffects = answer.SideEffects[:maxSideEffects]
	}
	if component.State == effect.Assessed {
		answer.Alerts = &v1alpha1.MeasuredAlerts{Before: count(outcome.Before), Resolved: count(outcome.Resolved), Firing: count(outcome.Firing), New: count(outcome.New)}
	}
	return answer
}

// ask asks the source; why says what is in the way, and the answer itself can say more.
func (x *Alerts) ask(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) (q *effectiveness.Question, answer effect.AlertAnswer, why string) {
	q = questionOf(a)
	if len(q.Matchers) == 0 {
		names, err := x.Pods.names(ctx, a, sight)
		if err != nil {
			return q, answer, fmt.Sprintf("the pods of the target are not known: %s", err)
		}
		q.Target.Pods = names
	}
	return q, x.Sources.AskAlerts(ctx, q), ""
}

// recall asks for the alerts that began before the write; nil if there is no answer. The alerts that fire at the
// first look after the write stand for them: who writes asks no source.
func (x *Alerts) recall(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight, now time.Time) *v1alpha1.AlertsBefore {
	q, answer, why := x.ask(ctx, a, sight)
	if why != "" || !answer.Read {
		return nil
	}
	before := &v1alpha1.AlertsBefore{ReadTime: metav1.NewTime(now)}
	slices.SortFunc(answer.Firing, func(a, b effect.Alert) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	for _, alert := range slices.CompactFunc(answer.Firing, func(a, b effect.Alert) bool { return a.Fingerprint == b.Fingerprint }) {
		if !alert.StartTime.After(q.WrittenTime) && len(before.Alerts) < maxBefore {
			before.Alerts = append(before.Alerts, v1alpha1.FiringAlert{Fingerprint: alert.Fingerprint, Name: alert.Name, StartTime: metav1.NewTime(alert.StartTime)})
		}
	}
	return before
}

// recallAlerts stores the alerts of before the write, as soon as a look gets an answer.
func (r *Reconciler) recallAlerts(ctx context.Context, s *subject) {
	if r.Alerts == nil || s.timeUnknown || s.next.Status.AlertsBefore != nil || s.assessment.Spec.Execution != v1alpha1.ExecutionDone {
		return
	}
	s.next.Status.AlertsBefore = r.Alerts.recall(ctx, s.next, &s.sight, s.now)
}
