// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// trials are what a world tries an executor with, beside disturbed messages. Draws of their
// own decide them, so that the draws of a scenario stay as they are.
type trials struct {
	// caps of the Environment, and of the whole cluster.
	caps, clusterCaps ledger.Caps
	// stabilization is how long a target has to be healthy; zero is ten seconds.
	stabilization time.Duration
	// delay between two batches.
	delay time.Duration
	// admission is what a webhook does to writes of targets, and store what is wrong with
	// the store of the records.
	admission admission
	store     storeFault
	// dozes says that an executor may stand still before it sends an update.
	dozes bool
	// jumps are when the clocks of the two executors are set, and by how much.
	jumps [2]jump
	// workers are how many plans each executor carries on at the same time; zero is one.
	workers int
	// planner says that no plan is there at first, and a planner makes them: of so many drifted
	// targets, beside so many others, that were authorized so long before the beginning.
	planner        bool
	drifted, peers int
	authorizedFor  time.Duration
	// verdicts says that effects are assessed, and that breakers wait for verdicts.
	// breaks says that the breaker of the policy is open at first.
	verdicts, breaks bool
	// mesh says that proxies serve the targets.
	mesh bool
	// standbys says that a standby serves while a target is repaired, and proxiesLack that no proxy is there.
	standbys, proxiesLack bool
	// releases says that each target has a release, whose runs may be under way.
	releases bool
	// manual plans wait for a person, and scheduled ones for a time after the beginning.
	manual    bool
	scheduled time.Duration
}

// try gives a scenario two aims.
func (c *scenario) try(rng *rand.Rand) {
	all := triedAims()
	first := rng.IntN(len(all))
	second := (first + 1 + rng.IntN(len(all)-1)) % len(all)
	for _, i := range []int{first, second} {
		all[i].at(c, rng)
		c.aims = append(c.aims, all[i].Name)
	}
}

func (c *scenario) hire(people ...disturbance) { c.meddlers = append(c.meddlers, people...) }

// forAWhile has something be so for a while, and then no longer.
func (p *person) forAWhile(atMost time.Duration, begin, end func()) {
	begin()
	defer end()
	p.Sleep(time.Duration(p.Rand().Int64N(int64(atMost))))
}

// beginning says what makes a plan begin.
type beginning struct {
	trigger v1alpha1.RemediationTrigger
	at      *metav1.Time
}

// atOnce is how most plans begin.
var atOnce = beginning{trigger: v1alpha1.TriggerImmediate}

// beginning of the first plan of a world.
func (t *trials) beginning(epoch time.Time) beginning {
	switch {
	case t.manual:
		return beginning{trigger: v1alpha1.TriggerManual}
	case t.scheduled > 0:
		at := metav1.NewTime(epoch.Add(t.scheduled))
		return beginning{v1alpha1.TriggerImmediate, &at}
	}
	return atOnce
}
