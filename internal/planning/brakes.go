// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// guardState holds the brakes of a guard, beside its rules.
type guardState struct {
	suspended bool
	// told is the mass drift of the guard's status, and counted that of its objects:
	// the status is a moment old, and a plan may be quicker.
	told, counted specguard.Freeze
}

func stateOf(spec *v1alpha1.GuardSpec, status *v1alpha1.GuardStatus, t guards.Tally, now time.Time) guardState {
	return guardState{
		suspended: spec.Suspend != nil && spec.Suspend.EndTime.After(now),
		told:      specguard.FreezeOf(status),
		counted:   specguard.NextFreeze(specguard.Freeze{}, t.Population, now),
	}
}

// holder names the run of a release that has the object of a Baseline as a variation.
func (w *World) holder(b *v1alpha1.Baseline) string {
	if canon.ParseGVK(b.Spec.Target.APIVersion, b.Spec.Target.Kind).Group != "apps" {
		return ""
	}
	return rollout.FindHolder(w.Releases, b.Namespace, b.Spec.Target.Kind, b.Spec.Target.Name)
}

// countedAgain is when the objects of a guard are counted again that has told of no mass drift. The
// guard is late, or the drift was a moment too old for the guard, and then no event tells that.
const countedAgain = time.Minute

// brakes looks through the guards that a Baseline names, and fills in what they say of its drift.
func (w *World) brakes(b *v1alpha1.Baseline, now time.Time, d *planner.Drift) {
	deciding, causes := specguard.DecidingOnRepair(b.Status.Guards), specguard.CausesOf(b.Status.Findings)
	told := false
	for _, name := range b.Status.Guards {
		state := w.states[specguard.ParseGuardRef(name, b.Namespace)]
		d.Suspended = d.Suspended || state.suspended && slices.Contains(deciding, name)
		tells := state.told.HoldsObject(b.Namespace, causes)
		if d.Frozen == "" && (tells || state.counted.HoldsObject(b.Namespace, causes)) {
			d.Frozen = name
		}
		told = told || tells
	}
	if d.Frozen != "" && !told {
		d.FrozenUntil = now.Add(countedAgain)
	}
}
