// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// release notes whether the run of a target is under way.
func (j *judge) release(c apiserver.Commit) {
	target := strings.TrimPrefix(c.Name, releaseOf(""))
	j.permits.runs[target] = c.After != nil && underWay(typedOf[v1alpha1.ABRelease](j.w, c.After))
}

// tookOver begins anew to look for a moment without a run: an executor that finds an intent of
// another one has to look at the releases itself before it sends the write.
func (j *judge) tookOver(before, next *v1alpha1.RemediationPlan) {
	for i := range next.Status.Steps {
		id := stepID(string(next.UID), int32(i)) //nolint:gosec // few
		switch {
		case next.Status.Steps[i].State != v1alpha1.StepIntent:
			delete(j.permits.intended, id)
		case before.Status.Holder != next.Status.Holder:
			granted := &permit{}
			j.permit(granted, next, i)
			j.permits.intended[id] = granted
		}
	}
}

// beside: I31 for a write of the executor that holds the plan. What an executor has sent before
// another one took over, no look can call back.
func (j *judge) beside(e effect) {
	granted := j.permits.intended[stepID(string(e.plan.UID), e.step)]
	if granted == nil || e.Client != e.plan.Status.Holder {
		return
	}
	j.seen["write of an intent that was taken over"]++
	if !granted.free {
		j.breaks("I31", e.Revision, "step %d of %s writes, and a run of a release has its target since another executor took the plan over", e.step, e.plan.Name)
	}
}
