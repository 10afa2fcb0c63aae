// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// Options of a run.
type Options struct {
	Mutant Mutant
	// Rough has everybody interfere who may be needed for a protection to matter,
	// and most writes of targets disturbed.
	Rough bool
	// Hours has every policy act at some hours alone.
	Hours bool
	// Creations has every target be made again.
	Creations bool
	// Planner has no plan be there at first, and a planner make them.
	Planner bool
	// Aim is the rare case that the world is about; nil has two of them beside all else.
	Aim *Aim
	// Refused has requests repeated that were refused, too.
	Refused bool
}

// Report of a run.
type Report struct {
	Seed uint64
	// Broken are the promises that were broken, the first one first.
	Broken []Breach
	// Digest of everything that happened.
	Digest string
	// Seen counts what happened, so that a simulation in which nothing does is noticed.
	Seen map[string]int
	// Messages that were sent, and how long the run took in virtual time.
	Messages int
	Virtual  time.Duration
	trace    []string
}

// String tells the first broken promise, and everything that led to it.
func (r *Report) String() string {
	if len(r.Broken) == 0 {
		return fmt.Sprintf("seed %d: nothing is broken", r.Seed)
	}
	return fmt.Sprintf("seed %d breaks %s\n%s", r.Seed, r.Broken[0], strings.Join(r.trace, "\n"))
}

// calmMessages bound how long a run may take to end once nothing disturbs it.
const calmMessages = 60_000

// Run carries one world out, from its first message to its end. It must be called
// in a bubble of testing/synctest of its own, after [Prepare].
func Run(seed uint64, o Options) *Report {
	s := schedule.New(seed)
	c := draw(s.Rand())
	if o.Hours && c.hours == nil {
		c.keepHours(s.Rand())
	}
	switch {
	case o.Aim != nil:
		c.shorten()
		o.Aim.at(&c, rand.New(rand.NewPCG(seed, 2))) //nolint:gosec // to be had again
		c.addWorkers(rand.New(rand.NewPCG(seed, 4))) //nolint:gosec // to be had again
	case !o.Rough:
		c.try(rand.New(rand.NewPCG(seed, 2)))                                          //nolint:gosec // to be had again
		c.addWorkers(rand.New(rand.NewPCG(seed, 4)))                                   //nolint:gosec // to be had again
		c.verdicts = rand.New(rand.NewPCG(seed, 9)).IntN(4) == 0                       //nolint:gosec // to be had again
		if aside := rand.New(rand.NewPCG(seed, 3)); aside.IntN(25) == 0 || o.Planner { //nolint:gosec // to be had again
			c.planFrom(aside)
		}
		if aside := rand.New(rand.NewPCG(seed, 11)); aside.IntN(25) == 0 && !c.planner { //nolint:gosec // to be had again
			c.standBy(aside)
		}
	default:
		c.roughen()
		if o.Mutant.in != nil {
			o.Mutant.in(&c)
		}
	}
	if o.Creations {
		c.makeAgain()
	}
	if o.Refused {
		c.repeatRefused()
	}
	w := newWorld(s, c, o.Mutant)
	w.spawn(c)
	s.Disturb(c.chances)
	s.Run(c.messages, w.ended)
	ended := w.settle()
	return w.report(seed, ended)
}

// spawn begins the actors of the world.
func (w *World) spawn(c scenario) {
	s := w.s
	s.Spawn("executor-a", w.executor(c.ahead[0], c.jumps[0]))
	s.Spawn("executor-b", w.executor(c.ahead[1], c.jumps[1]))
	s.Spawn("deployment-controller", w.controller)
	switch {
	case c.planner:
		s.Spawn("planner", w.planner(c.ahead))
		s.Spawn("assessor-that-judges", w.assess)
	case w.quarantines():
		s.Spawn("assessor-that-judges", w.assess)
	default:
		s.Spawn("observer", w.observer)
	}
	if c.standbys {
		s.Spawn("controllers-of-standbys", w.serveStandbys)
	}
	if c.verdicts {
		s.Spawn("assessor-of-effects", w.judgeEffects)
	}
	for _, d := range c.meddlers {
		s.Spawn(d.name, w.meddler(d))
	}
}

// settle lets everything come to rest: nothing is disturbed, one executor has the
// lease, and nobody keeps anything from going on. It says whether all came to an end.
func (w *World) settle() bool {
	w.calm.Store(true)
	w.calmSince = time.Now()
	w.s.Disturb(schedule.Chances{})
	w.s.Retire("executor-b")
	w.s.Note("everything is calm")
	return w.s.Run(cmp.Or(w.mutant.patience, calmMessages), func() bool {
		w.relent()
		return w.ended()
	})
}

func (w *World) report(seed uint64, ended bool) *Report {
	w.recordings.bury()
	w.s.Stop()
	j := newJudge(w, w.Server.History(), ended)
	j.seen["watch that stands still"], j.seen["wake"] = int(w.stalls.Load()), int(w.wakes.Load())
	j.seen["doze before a creation"], j.seen["creation that is too late"] = int(w.dozes.Load()), int(w.tooLate.Load())
	maps.Copy(j.seen, w.counts)
	trace := w.s.Trace()
	return &Report{
		Seed: seed, Broken: j.broken, Digest: w.s.Digest(), Seen: j.seen, Messages: len(trace),
		Virtual: time.Since(w.epoch), trace: trace,
	}
}
