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

func timeOf(t *metav1.Time) (zero time.Time) {
	if t == nil {
		return zero
	}
	return t.Time
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
