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
	// stabilisation is how long a target has to be healthy; zero is ten seconds.
	stabilisation time.Duration
	// delay between two batches.
	delay time.Duration
	// admission is what a webhook does to writes of targets, and store what is wrong with
	// the store of the records.
	admission admission
	store     storeFault
	// dozes says that an executor may stand still before it sends an update.
	dozes bool
	// manual plans wait for a person, and scheduled ones for a time after the beginning.
	manual    bool
	scheduled time.Duration
}

// aim is one case that a world is about.
type aim struct {
	name string
	// at changes a scenario so that the case is met.
	at func(c *scenario, rng *rand.Rand)
}

// aims are all of them; each world has two, so that each is tried in many beside others.
func aims() []aim {
	return []aim{
		{"policy edits", func(c *scenario, _ *rand.Rand) {
			c.hire(disturbance{"policy-editor", requester, (*person).editsPolicy})
		}},
		{"unreadable kinds", func(c *scenario, _ *rand.Rand) { c.hire(disturbance{"blinder", "root", (*person).blinds}) }},
		{"accepts", func(c *scenario, _ *rand.Rand) {
			c.hire(disturbance{"acceptor", "alice", (*person).accepts}, disturbance{"authorizer", "assessor", (*person).authorizes})
		}},
		{"admission", func(c *scenario, rng *rand.Rand) {
			c.trials.admission = pick(rng, defaulting, changing, refusing)
			c.hire(disturbance{"webhook-owner", "root", (*person).turnsAdmission})
		}},
		{"health of others", func(c *scenario, _ *rand.Rand) { c.hire(disturbance{"counter", "assessor", (*person).countsHealth}) }},
		{"batches", func(c *scenario, rng *rand.Rand) {
			c.batches, c.second = [][]int32{{0}, {1}}, ""
			c.trials.delay = pick(rng, 30*time.Second, 2*time.Minute)
		}},
		{"stores", func(c *scenario, rng *rand.Rand) {
			c.trials.store = pick(rng, storeFails, storeHangs, storeClaimsReady)
			c.hire(disturbance{"store-breaker", "root", (*person).breaksStore}, disturbance{"canceller-beside-a-store", "alice", (*person).controls})
		}},
		{"caps", func(c *scenario, rng *rand.Rand) {
			c.limits.MaxConcurrent = 2
			c.trials.caps = ledger.Caps{Concurrent: new(pick[int32](rng, 1, 1, 2)), PerHour: new(pick[int32](rng, 2, 3, 10))}
			c.trials.clusterCaps = ledger.Caps{Concurrent: new(pick[int32](rng, 1, 2))}
		}},
		{"waits", func(c *scenario, rng *rand.Rand) {
			if c.trials.manual = rng.IntN(2) == 0; !c.trials.manual {
				c.trials.scheduled = pick(rng, 10*time.Minute, 20*time.Minute)
			}
			c.hire(disturbance{"pauser", "alice", (*person).pausesLong}, disturbance{"second-pauser", "alice", (*person).pausesLong})
		}},
		{"stabilisation", func(c *scenario, rng *rand.Rand) {
			c.trials.stabilisation = pick(rng, 30*time.Second, 2*time.Minute)
		}},
		{"dozes", func(c *scenario, _ *rand.Rand) {
			// An update has no time until which the API server admits it, as a creation has: a
			// process that stands still before it sends one may write when the hours are over.
			c.trials.dozes = c.hours == nil
		}},
		{"repeated answers", func(c *scenario, rng *rand.Rand) { c.chances.Repeated = pick(rng, 10, 20) }},
	}
}

// try gives a scenario two aims. c.hours and deadlines stay: an aim bends nothing else.
func (c *scenario) try(rng *rand.Rand) {
	all := aims()
	first := rng.IntN(len(all))
	second := (first + 1 + rng.IntN(len(all)-1)) % len(all)
	for _, i := range []int{first, second} {
		all[i].at(c, rng)
		c.aims = append(c.aims, all[i].name)
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
