// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// plannerAims are worlds in which no plan is there at first.
func plannerAims() []Aim {
	return []Aim{
		{"planner", []string{"plan that a planner makes", "look of the planner", "plan Succeeded"}, func(c *scenario, rng *rand.Rand) {
			c.planFrom(rng)
			c.chances.Crash, c.messages = 3, 400
			c.meddle(rng)
		}},
	}
}

// planFrom has a planner make all plans of a world.
func (c *scenario) planFrom(rng *rand.Rand) {
	c.planner, c.manual, c.scheduled = true, false, 0
	if c.action == v1alpha1.ActionQuarantine {
		c.action = v1alpha1.ActionReconcile
	}
	c.drifted, c.peers = 1+rng.IntN(3), pick(rng, 0, 6, 9)
	if c.drifted == 3 { // of less, three are a mass drift
		c.peers = 9
	}
	c.authorizedFor = pick(rng, 0, time.Hour, time.Hour)
	c.limits.MaxPerHour = 10 // a plan for each of many targets would wait for hours
	c.limits.MaxTargets = pick[int32](rng, 10, 10, 1)
	// A plan waits for a day for a ledger that is made anew.
	c.meddlers = slices.DeleteFunc(c.meddlers, func(d disturbance) bool { return d.name == "eraser" })
	c.hours = nil
}

// addWorkers gives the executors of some worlds with workers as many as the real one has.
func (c *scenario) addWorkers(rng *rand.Rand) {
	if four := rng.IntN(2) == 0; four && c.workers > 0 || four && c.planner && rng.IntN(4) == 0 {
		c.workers = 4
	}
}

// meddle has some people interfere with what a planner does.
func (c *scenario) meddle(rng *rand.Rand) {
	all := []disturbance{
		disturber("foreign", "mallory", (*person).changes), disturber("second-foreign", "mallory", (*person).changes), disturber("bot", "bot", (*person).putsBack),
		disturber("replacer", "mallory", (*person).replaces), disturber("canceler", "alice", (*person).controls), eager("policy-editor", requester, (*person).editsPolicy),
		disturber("acceptor", "alice", (*person).accepts), disturber("authorizer", "assessor", (*person).authorizes), disturber("halter", "alice", (*person).halts),
		disturber("plan-eraser", "root", (*person).erasesPlan), disturber("damager", "root", (*person).damages), disturber("rights", "root", (*person).revokes),
	}
	if rng.IntN(20) == 0 {
		c.hire(eager("frantic-editor", requester, (*person).editsOften))
	}
	for _, d := range all {
		if rng.IntN(3) == 0 {
			c.hire(d)
		}
	}
	if rng.IntN(2) == 0 {
		c.action = pick(rng, v1alpha1.ActionRollback, v1alpha1.ActionScale, v1alpha1.ActionRestart)
		c.kind = &deployments
	}
	c.still = pick(rng, 4, 25)
}
