// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// maxMessage is the bound of a message, in bytes.
const maxMessage = 512

// readStored returns a stored assessment as pkg/effect has it.
func readStored(a *v1alpha1.EffectivenessAssessment) *effect.Assessment {
	spec, status := &a.Spec, &a.Status
	return &effect.Assessment{
		Windows:     effect.WindowsOf(&spec.Windows),
		Executed:    spec.Execution != v1alpha1.ExecutionNone,
		WrittenTime: timeOf(spec.WrittenTime),
		Written:     effect.Body{UID: spec.Target.UID, Hash: spec.PostHash, Generation: spec.PostGeneration},
		Components:  componentsOf(status),
		Decaying:    status.AlertDecay == v1alpha1.DecayActive,
		AskedTime:   timeOf(status.AskedTime),
	}
}

func timeOf(t *metav1.Time) (zero time.Time) {
	if t == nil {
		return zero
	}
	return t.Time
}

// componentsOf returns the components of a status. A state that this version does not know is asked for again.
func componentsOf(status *v1alpha1.EffectivenessAssessmentStatus) (all effect.Components) {
	for i := range status.Components {
		c := &status.Components[i]
		switch c.Name {
		case v1alpha1.ComponentHealth, v1alpha1.ComponentAlerts, v1alpha1.ComponentMetrics:
			*all.Of(effect.Name(c.Name)) = effect.Component{
				State: stateOf(c.State), Score: c.Score, Bad: c.Effect == v1alpha1.EffectAgainst, Why: c.Message,
			}
		}
	}
	return all
}

func stateOf(state v1alpha1.ComponentState) effect.State {
	switch state {
	case v1alpha1.ComponentAssessed:
		return effect.Assessed
	case v1alpha1.ComponentNotConfigured:
		return effect.NotConfigured
	case v1alpha1.ComponentNotAnswered:
		return effect.NotAnswered
	}
	return effect.NotAssessed
}

// StoreComponent returns a component as it is stored, without its measurement.
func StoreComponent(name v1alpha1.EffectComponent, c effect.Component) v1alpha1.AssessedComponent {
	stored := v1alpha1.AssessedComponent{
		Name: name, State: v1alpha1.ComponentState(c.State), Score: c.Score, Message: diff.TruncateText(diff.Printable(c.Why), maxMessage),
	}
	if c.State == effect.Assessed {
		stored.Effect = v1alpha1.EffectFor
		if c.Bad {
			stored.Effect = v1alpha1.EffectAgainst
		}
	}
	return stored
}

// putComponent puts an answer into a status, in the place of the one before.
func putComponent(status *v1alpha1.EffectivenessAssessmentStatus, c *v1alpha1.AssessedComponent) {
	i := slices.IndexFunc(status.Components, func(o v1alpha1.AssessedComponent) bool { return o.Name == c.Name })
	if i < 0 {
		status.Components = append(status.Components, *c)
		return
	}
	status.Components[i] = *c
}
