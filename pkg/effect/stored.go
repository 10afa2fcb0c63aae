// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReadStored returns an assessment as it is stored.
func ReadStored(a *v1alpha1.EffectivenessAssessment) *Assessment {
	spec, status := &a.Spec, &a.Status
	return &Assessment{
		Windows:     WindowsOf(&spec.Windows),
		Executed:    spec.Execution != v1alpha1.ExecutionNone,
		WrittenTime: timeOf(spec.WrittenTime),
		Written:     Body{UID: spec.Target.UID, Hash: spec.PostHash, Generation: spec.PostGeneration},
		Components:  ReadComponents(status),
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

// ReadComponents returns the components of a status. A state that this version does not know is asked for again.
func ReadComponents(status *v1alpha1.EffectivenessAssessmentStatus) (all Components) {
	for i := range status.Components {
		c := &status.Components[i]
		switch c.Name {
		case v1alpha1.ComponentHealth, v1alpha1.ComponentAlerts, v1alpha1.ComponentMetrics:
			*all.Of(Name(c.Name)) = Component{
				State: stateOf(c.State), Score: c.Score, Bad: c.Effect == v1alpha1.EffectAgainst, Why: c.Message,
			}
		}
	}
	return all
}

func stateOf(state v1alpha1.ComponentState) State {
	switch state {
	case v1alpha1.ComponentAssessed:
		return Assessed
	case v1alpha1.ComponentNotConfigured:
		return NotConfigured
	case v1alpha1.ComponentNotAnswered:
		return NotAnswered
	}
	return NotAssessed
}
