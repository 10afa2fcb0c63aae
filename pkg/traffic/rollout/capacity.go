// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// required is how many ready endpoints a variation needs for a weight: the part of what the active one
// had at its most, rounded up.
func (r *Run) required(weight traffic.Weight) int {
	if !r.hasRequests() {
		return r.groupSize(weight)
	}
	return max(1, (int(weight)*r.Capacity+int(traffic.Total)-1)/int(traffic.Total))
}

// requiredIn is how many ready endpoints a canary needs not to be short in a stage. A clone is not short
// because the active variation was scaled up since: the clone has to be scaled up as well first.
func (r *Run) requiredIn(stage *StageStatus) int {
	if stage.Required > 0 {
		return min(stage.Required, r.required(stage.Weight))
	}
	return r.required(stage.Weight)
}

// sizedBy returns what a stage of a clone keeps as Required; 0 of a canary that has its size from its owner.
func (r *Run) sizedBy(weight traffic.Weight) int {
	if !r.isCloned() {
		return 0
	}
	return r.required(weight)
}

// capacityOf the active variation. Pods that a deployment of it has beyond its replicas for a while do not
// count where a clone is sized by them, nor does a promotion that deploys it raise what it has to have.
func (r *Run) capacityOf(active Arm) int {
	switch {
	case !r.isCloned():
		return active.Ready
	case r.State == Promoting:
		return r.Capacity
	case active.Replicas > 0:
		return min(active.Ready, active.Replicas)
	}
	return active.Ready
}

// fallbackTolerance is the part of its endpoints, in percent, that the active variation can lose before
// the ramp holds.
const fallbackTolerance = 20

// hasCapacity tells whether the canary can take a weight, and whether the active variation could take
// everything back; it waits otherwise.
func (m *machine) hasCapacity(weight traffic.Weight) bool {
	run := m.next.Run
	if run.hasRequests() && !m.hasEndpoints(weight) {
		return false
	}
	return run.Division == nil || m.hasGroupPods(weight)
}

// hasEndpoints tells whether the endpoints of both variations are enough for the requests of a weight.
func (m *machine) hasEndpoints(weight traffic.Weight) bool {
	run := m.next.Run
	canary, is := m.arm(run.Canary)
	if wants := run.required(weight); !is || canary.Ready < wants {
		return m.waitTold(WaitCapacity, m.deadlines().Deployment, "%s: %d ready, wants %d for %s%%", run.Canary, canary.Ready, wants, percent(weight))
	}
	if active, is := m.arm(run.Active); !is || active.Ready*100 < run.Capacity*(100-fallbackTolerance) {
		return m.waitTold(WaitFallback, m.deadlines().Deployment, "%s: %d of %d are ready, too few to take all requests back", run.Active, active.Ready, run.Capacity)
	}
	return true
}

// hasGroupPods tells whether the pods of both groups are enough for a weight.
func (m *machine) hasGroupPods(weight traffic.Weight) bool {
	run := m.next.Run
	canary, is := m.groupArm(run.Canary)
	if wants := run.groupSize(weight); !is || canary.Ready < wants {
		return m.waitTold(WaitCapacity, m.deadlines().Deployment, "%s: %d ready, wants %d for %s%%", m.groupName(run.Canary), canary.Ready, wants, percent(weight))
	}
	if active, is := m.groupArm(run.Active); !is || active.Ready < run.Division.Active {
		return m.waitTold(WaitFallback, m.deadlines().Deployment, "%s: %d of %d are ready, so the group does not shrink", m.groupName(run.Active), active.Ready, run.Division.Active)
	}
	return true
}
