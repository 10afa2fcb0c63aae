// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/controller/guard"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// stateOf says whether a guard is suspended, and whether it sees a mass drift.
// The guard's own condition is a moment old, and a plan may be quicker than that,
// so its objects are counted here too.
func stateOf(spec *v1alpha1.GuardSpec, status *v1alpha1.GuardStatus, t guard.Tally, now time.Time) guardState {
	frozen := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionMassDrift)
	return guardState{
		suspended: spec.Suspend != nil && spec.Suspend.Until.After(now),
		frozen:    frozen || specguard.MassDrift(int(t.Objects), int(t.Recent)),
	}
}

// brakes looks through the guards that a Baseline names.
func (w *World) brakes(b *v1alpha1.Baseline) (suspended bool, frozenBy string) {
	for _, name := range b.Status.Guards {
		state := w.states[refOf(name, b.Namespace)]
		suspended = suspended || state.suspended
		if state.frozen && frozenBy == "" {
			frozenBy = name
		}
	}
	return suspended, frozenBy
}

// refOf reads a guard's name as it stands in Baseline.status.guards.
func refOf(name, namespace string) specguard.GuardRef {
	kind, own, _ := strings.Cut(name, "/")
	if kind == "SpecGuard" {
		return specguard.GuardRef{Namespace: namespace, Name: own}
	}
	return specguard.GuardRef{Name: own}
}
