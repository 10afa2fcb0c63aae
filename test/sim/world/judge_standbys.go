// SPDX-License-Identifier: Apache-2.0

package world

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/traffic/standby"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// aboutStandby looks at a write of a standby or of its ABRelease, and says whether it is one: I36. What a person
// removes is made again by no executor, and what counts as removed is made by none.
func (j *judge) aboutStandby(c apiserver.Commit) bool {
	id, is := labelOf(c.After, v1alpha1.LabelStandby).(string)
	if !is {
		id, is = labelOf(c.Before, v1alpha1.LabelStandby).(string)
	}
	if !is {
		return false
	}
	if c.Resource.Resource == "abreleases" {
		j.splits[c.Name] = c.After
	}
	if c.User != Executor {
		return true
	}
	plan, step := j.ofStandby(id)
	switch {
	case plan == nil:
		j.breaks("I9", c.Revision, "%s %s %s belongs to no step", c.Method, c.Resource.Resource, c.Name)
	case c.Resource.Resource == deployments.resource && c.Before != nil:
		j.breaks("I36", c.Revision, "an executor %s the standby %s", c.Method, c.Name)
	case c.Before == nil && (step.Phase == v1alpha1.StandbyRemoved || protocol.Final(plan.Status.Phase)) && !j.erased[string(plan.UID)]:
		j.breaks("I36", c.Revision, "%s %s is made, and the standby counts as removed", c.Resource.Kind, c.Name)
	case c.Before == nil && c.Resource.Resource == deployments.resource:
		j.seen["standby that is made"]++
	}
	return true
}

// ofStandby finds the plan and the standby with an id.
func (j *judge) ofStandby(id string) (*v1alpha1.RemediationPlan, *v1alpha1.StepStandby) {
	for _, p := range j.plans {
		for i := range p.Status.Steps {
			step := &p.Status.Steps[i]
			for number := int32(1); step.Standby != nil && number <= step.Standby.Number; number++ {
				if protocol.StandbyID(p, step.Index, number) != id {
					continue
				}
				if number < step.Standby.Number { // a later one is made only when this one counts as removed
					return p, &v1alpha1.StepStandby{Phase: v1alpha1.StandbyRemoved}
				}
				return p, step.Standby
			}
		}
	}
	return nil, nil
}

// stoodBy: I36 for a write of a target. The standby serves, and its ABRelease gives it the requests. A person may
// remove the ABRelease between the last look of the executor and its write.
func (j *judge) stoodBy(e effect) {
	if !protocol.StandsBy(&e.plan.Spec.Plan, e.step) {
		return
	}
	j.seen["effect beside a standby"]++
	s := e.status().Standby
	if s == nil || s.Phase != v1alpha1.StandbyServing {
		j.breaks("I36", e.Revision, "step %d of %s is written, and its standby is %+v", e.step, e.plan.Name, s)
		return
	}
	split := j.splits[s.Name]
	switch {
	case split == nil:
		j.seen["effect after a person removed the standby"]++
	case !standby.StandingOf(typedOf[v1alpha1.ABRelease](j.w, split)).ToStandby:
		j.breaks("I36", e.Revision, "step %d of %s is written, and the requests are with the target", e.step, e.plan.Name)
	}
}

// withoutStandbys: I36 for the end. No standby outlasts its plan.
func (j *judge) withoutStandbys(ended bool) {
	if !ended || !j.w.standbys {
		return
	}
	for _, name := range j.w.standbyNames.names() {
		if j.w.abRelease(name) != nil || j.w.deployment(name) != nil {
			j.breaks("I36", 0, "the standby %s is still there", name)
			continue
		}
		j.seen["standby that is gone at the end"]++
	}
}
