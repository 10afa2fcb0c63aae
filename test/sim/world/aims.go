// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// Aim is a rare case that a world is about.
type Aim struct {
	Name string
	// Meets are what is counted when the case is met.
	Meets []string
	// at changes a scenario so that the case is met.
	at func(c *scenario, rng *rand.Rand)
}

// Aims are all rare cases. Most worlds have two of them beside all else that is drawn; short
// worlds have one and little else, so that each case is met often.
func Aims() []Aim {
	return slices.Concat(triedAims(), plannerAims(), aimsAtHours(), verdictAims(), standbyAims())
}

// triedAims are those of which most worlds have two.
func triedAims() []Aim { return append(aimsAtOthers(), aimsAtSteps()...) }

// aimsAtOthers are about people, webhooks and stores.
func aimsAtOthers() []Aim {
	return []Aim{
		{"policy edits", []string{"edit of a policy", "step Skipped PolicyChanged"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("policy-editor", requester, (*person).editsPolicy), eager("second-policy-editor", requester, (*person).editsPolicy))
			c.batches = [][]int32{{0}, {1}}
		}},
		{"unreadable kinds", []string{"kind that cannot be read"}, func(c *scenario, _ *rand.Rand) { c.hire(eager("blinder", "root", (*person).blinds)) }},
		{"accepts", []string{"accept", "authorization while a plan runs", "step Skipped TargetMoved"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("acceptor", "alice", (*person).accepts), eager("authorizer", "assessor", (*person).authorizes))
		}},
		{"admission", []string{"webhook that defaults", "webhook that changes", "webhook that refuses", "step Skipped WouldNotConverge", "step Skipped Refused"}, func(c *scenario, rng *rand.Rand) {
			c.admission = pick(rng, defaulting, changing, refusing)
			c.hire(eager("webhook-owner", "root", (*person).turnsAdmission), eager("second-webhook-owner", "root", (*person).turnsAdmission))
		}},
		{"health of others", []string{"count of the healthy"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("counter", "assessor", (*person).countsHealth), eager("second-counter", "assessor", (*person).countsHealth))
		}},
		{"fights", []string{"fight over a target", "step Skipped Contended"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("fight-observer", "assessor", (*person).seesFight), eager("second-fight-observer", "assessor", (*person).seesFight))
		}},
		{"mass drifts", []string{"mass drift", "plan that waits for the end of a mass drift"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("drift-observer", "assessor", (*person).seesMassDrift), eager("second-drift-observer", "assessor", (*person).seesMassDrift))
		}},
		{"releases", []string{"release under way", "plan that waits for the end of a run"}, func(c *scenario, _ *rand.Rand) {
			c.kind, c.releases = &deployments, true
			c.hire(eager("releaser", "alice", (*person).releases), eager("second-releaser", "alice", (*person).releases))
		}},
		{"quarantines", []string{
			"effect Quarantine", "request to lift a quarantine", "quarantine that ended: Lifted", "quarantine that ended: InSync", "quarantine that stands over a drift",
			"step that ends with the obstacle NoMesh", "step that ends with the obstacle LastReadyEndpoints",
		}, (*scenario).quarantine},
		{"stores", []string{"store that fails", "store that hangs", "store that claims to be ready"}, func(c *scenario, rng *rand.Rand) {
			c.store = pick(rng, storeFails, storeHangs, storeClaimsReady)
			c.hire(eager("store-breaker", "root", (*person).breaksStore), eager("canceler-beside-a-store", "alice", (*person).controls))
		}},
		{"forgetful stores", []string{"record that the store forgot", "forgotten record that is missed"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("forgetter", "root", (*person).forgets))
		}},
		{"ledgers by hand", []string{"ledger edited by hand"}, func(c *scenario, _ *rand.Rand) {
			c.hire(eager("ledger-editor", "root", (*person).editsLedger), eager("second-ledger-editor", "root", (*person).editsLedger))
		}},
		{"waits", []string{"long pause", "plan that waits for long"}, func(c *scenario, rng *rand.Rand) {
			if c.manual = rng.IntN(2) == 0; !c.manual {
				c.scheduled = pick(rng, 10*time.Minute, 20*time.Minute)
			}
			c.hire(eager("pauser", "alice", (*person).pausesLong), eager("second-pauser", "alice", (*person).pausesLong))
		}},
	}
}

// aimsAtSteps are about what becomes of steps.
func aimsAtSteps() []Aim {
	return []Aim{
		{"batches", []string{"step after a pause between batches"}, func(c *scenario, rng *rand.Rand) {
			c.batches, c.second = [][]int32{{0}, {1}}, ""
			c.delay = pick(rng, 30*time.Second, 2*time.Minute)
		}},
		{"caps", []string{"wait for a cap"}, func(c *scenario, rng *rand.Rand) {
			c.limits.MaxConcurrent, c.second, c.batches = 3, "other", [][]int32{{0, 1}}
			c.caps = ledger.Caps{Concurrent: new(pick[int32](rng, 1, 1, 2)), PerHour: new(pick[int32](rng, 3, 10))}
			c.clusterCaps = ledger.Caps{Concurrent: new(pick[int32](rng, 1, 2))}
		}},
		{"stabilization", []string{"verified after a long stabilization"}, func(c *scenario, rng *rand.Rand) {
			c.stabilization = pick(rng, 30*time.Second, 2*time.Minute)
		}},
		{"ends before health", []string{"step Failed Stopped"}, func(c *scenario, rng *rand.Rand) {
			c.stabilization = pick(rng, 30*time.Second, 2*time.Minute)
			c.hire(eager("canceler", "alice", (*person).cancels), eager("breaker-of-targets", "mallory", (*person).changes))
		}},
		{"dozes", []string{"doze before an update"}, func(c *scenario, _ *rand.Rand) {
			// An update has no time until which the API server admits it, as a creation has: a
			// process that stands still before it sends one may write when the hours are over.
			c.dozes = c.hours == nil
		}},
		{"clocks that jump", []string{"clock that jumps"}, func(c *scenario, rng *rand.Rand) {
			if !c.dozes {
				c.keepHours(rng)
			}
			for i := range c.jumps {
				c.jumps[i] = jump{time.Duration(rng.Int64N(int64(5 * time.Minute))), pick(rng, -10*time.Second, -time.Minute, -4*time.Minute, -time.Hour, 4*time.Minute)}
			}
		}},
		{"repeated answers", []string{"attempts", "result Recovered"}, func(c *scenario, rng *rand.Rand) {
			c.chances.Repeated, c.chances.Unanswered, c.chances.Critical = pick(rng, 5, 10), 5, 40
		}},
		{"breakers", []string{"probe", "breaker that opens"}, func(c *scenario, _ *rand.Rand) {
			c.limits.CircuitBreaker = v1alpha1.CircuitBreakerSettings{FailureThreshold: 1, OpenDuration: &metav1.Duration{Duration: time.Minute}}
			c.second, c.batches, c.limits.MaxConcurrent = "other", [][]int32{{0}}, 1
			c.hire(eager("breaker-of-targets", "mallory", (*person).changes), eager("second-breaker-of-targets", "mallory", (*person).replaces))
		}},
		{"fences", []string{"fence", "step Fenced Stopped"}, func(c *scenario, _ *rand.Rand) {
			c.chances.Lost, c.chances.Late, c.chances.Critical = 14, 6, 40
			c.batches, c.limits.MaxConcurrent = [][]int32{{0, 1}}, 2
			c.hire(disturbance{name: "canceler-of-intents", user: "alice", do: (*person).cancels, atIntents: true})
		}},
		{"workers", []string{"plan beside a plan of the same process"}, func(c *scenario, rng *rand.Rand) {
			c.workers, c.second, c.limits.MaxConcurrent = 2, pick(rng, "other", "other", "same"), 2
		}},
		{"neighbors", []string{"step Skipped AlreadyDesired", "step Skipped Claimed"}, func(c *scenario, rng *rand.Rand) {
			c.second, c.limits.MaxConcurrent = "same", 2
			c.hire(eager("restorer", "bot", (*person).restores))
			// A plan meets a claim between the claim of another plan and its write, which a store holds up.
			c.store = pick(rng, storeFails, storeHangs)
			c.hire(eager("store-breaker", "root", (*person).breaksStore), eager("second-store-breaker", "root", (*person).breaksStore))
		}},
	}
}

// aimsAtHours are about windows that close.
func aimsAtHours() []Aim {
	return []Aim{
		{"windows that close over an intent", []string{"intent that is revoked"}, func(c *scenario, rng *rand.Rand) {
			c.keepHours(rng)
			c.late = c.hours.closes - 15*time.Second - time.Duration(rng.Int64N(int64(15*time.Second)))
			c.chances.Lost, c.chances.Late, c.chances.Crash, c.chances.Critical = 14, 6, 10, 40
		}},
	}
}

// shorten leaves little of a scenario but what it is about.
func (c *scenario) shorten() {
	c.hours, c.late, c.deadline, c.gone, c.redis = nil, 0, 4*time.Hour, false, absent
	c.ahead, c.meddlers, c.still, c.second = [2]time.Duration{}, nil, 100, ""
	c.limits.MaxPerHour, c.limits.Cooldown, c.messages = 10, nil, 150
	c.chances = schedule.Chances{Lost: 1, Late: 1, Crash: 1, Critical: 10}
}
