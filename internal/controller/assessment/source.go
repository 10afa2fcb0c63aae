// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// Source answers for one component.
type Source interface {
	// Ask measures a component of an assessment, which must not be changed. An answer that does
	// not count is NotAnswered, with the reason; it is asked for again until the deadline. The
	// assessor waits for the answer, so it must be bounded.
	Ask(ctx context.Context, a *v1alpha1.EffectivenessAssessment, sight *Sight) Answer
}

// Answer is what a source has measured.
type Answer struct {
	// AssessedComponent as it is stored; see [StoreComponent]. The reconciler sets its name.
	v1alpha1.AssessedComponent
	// Decaying says of alerts that each one that fires is one of before the write.
	Decaying bool
	// SideEffects say of alerts which others of the namespace began to fire after the write.
	SideEffects []string
}

// ask asks the sources for components. A component without a source is not configured.
func (r *Reconciler) ask(ctx context.Context, s *subject, names []effect.Name) {
	for _, name := range names {
		answer := Answer{AssessedComponent: v1alpha1.AssessedComponent{State: v1alpha1.ComponentNotConfigured}}
		if source := r.Sources[v1alpha1.EffectComponent(name)]; source != nil {
			answer = source.Ask(ctx, s.next, &s.sight)
		}
		answer.Name = v1alpha1.EffectComponent(name)
		putComponent(&s.next.Status, &answer.AssessedComponent)
		if name == effect.Alerts {
			s.next.Status.AlertDecay = decayOf(s.next.Status.AlertDecay, &answer)
			s.next.Status.SideEffects = answer.SideEffects
		}
	}
	if len(names) > 0 {
		s.next.Status.AskedTime = s.timeNow()
	}
}

// decayOf says what became of alerts of before the write, after a further answer.
func decayOf(before v1alpha1.AlertDecay, answer *Answer) v1alpha1.AlertDecay {
	switch {
	case answer.State != v1alpha1.ComponentAssessed:
		return before
	case answer.Decaying:
		return v1alpha1.DecayActive
	case before == "", answer.Effect == v1alpha1.EffectAgainst: // an alert of after the write fires
		return ""
	}
	return v1alpha1.DecayResolved
}
