// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/sim/world"
)

var (
	seeds = flag.Int("sim.seeds", 0, "how many seeds are run; 0: 330, 20 under the race detector, and 20,000 with PLUMBLINE_LONG")
	only  = flag.Int64("sim.seed", -1, "run this seed alone, and tell all of it")
	find  = flag.String("sim.find", "", "tell which seeds have this among what was seen")
	all   = flag.Bool("sim.all", false, "go on after a promise is broken, and tell only which ones are")
	rough = flag.Bool("sim.rough", false, "have everybody interfere who may be needed for a protection to matter")
	hours = flag.Bool("sim.hours", false, "have every policy act at some hours alone")
	makes = flag.Bool("sim.creations", false, "have every target be gone, and be made again")
	plans = flag.Bool("sim.planner", false, "have no plan be there at first, and a planner make them")
	again = flag.Bool("sim.refused", false, "let requests that were refused arrive once more")
)

func TestMain(m *testing.M) {
	// Much is made and soon forgotten: collecting it less often is a fifth of the time.
	debug.SetGCPercent(400)
	m.Run()
}

// longSeeds are run when PLUMBLINE_LONG is set.
const longSeeds = 20_000

// seedCount returns how many seeds are run.
func seedCount() uint64 {
	switch {
	case *seeds > 0:
		return uint64(*seeds)
	case os.Getenv(seed.Long) != "":
		return longSeeds
	default:
		return defaultSeeds
	}
}

// run carries one seed out in a bubble of its own.
func run(t *testing.T, seed uint64, o world.Options) *world.Report {
	t.Helper()
	var report *world.Report
	synctest.Test(t, func(*testing.T) { report = world.Run(seed, o) })
	return report
}

// fencesAfterRefusal says that the executor fences a write that was refused, before
// it says that it wrote nothing. Without, whoever repeats a refused request later
// may have it stored after its step has ended.
const fencesAfterRefusal = true

// options of a run that has no mutant.
func options(seed uint64) world.Options {
	return world.Options{Rough: *rough, Hours: *hours, Creations: *makes, Planner: *plans, Refused: *again || fencesAfterRefusal && seed%8 == 7}
}

// each runs seeds on all processors, until one of them says that it is enough.
func each(t *testing.T, from, n uint64, do func(t *testing.T, seed uint64) bool) {
	t.Helper()
	var next atomic.Uint64
	next.Store(from)
	var stop atomic.Bool
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for !stop.Load() {
					seed := next.Add(1) - 1
					if seed >= from+n {
						return
					}
					if !do(t, seed) {
						stop.Store(true)
					}
				}
			})
		}
	})
}

func TestPromisesHoldWhateverHappens(t *testing.T) {
	world.Prepare()
	if *only >= 0 {
		report := run(t, uint64(*only), options(uint64(*only)))
		t.Logf("%s; %d messages, %s; %v", report, report.Messages, report.Virtual, report.Seen)
		if len(report.Broken) > 0 {
			t.Error(report.Broken)
		}
		return
	}
	var mu sync.Mutex
	seen, messages := map[string]int{}, 0
	n, from := seedCount(), seed.Of(t, 0)
	t.Logf("the seeds begin with %d", from)
	each(t, from, n, func(t *testing.T, seed uint64) bool {
		report := run(t, seed, options(seed))
		mu.Lock()
		defer mu.Unlock()
		for what, times := range report.Seen {
			seen[what] += times
		}
		messages += report.Messages
		if *find != "" && report.Seen[*find] > 0 {
			t.Logf("seed %d has %q", seed, *find)
		}
		if *all && len(report.Broken) > 0 {
			t.Errorf("seed %d breaks %s", seed, report.Broken[0])
			return true
		}
		if len(report.Broken) > 0 {
			t.Errorf("%s\nreplay it with -run TestPromisesHoldWhateverHappens -sim.seed %d", report, seed)
		}
		return len(report.Broken) == 0
	})
	t.Logf("%d seeds, %d messages", n, messages)
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%8d %s", seen[what], what)
	}
	if from == 0 { // seeds that were chosen anew may lack what is rare
		happened(t, n, seen)
	}
}

// happened: a simulation in which nothing happens shows nothing.
func happened(t *testing.T, seeds uint64, seen map[string]int) {
	t.Helper()
	want := map[uint64][]string{
		20: {
			"effect", "grant", "takeover", "result Response", "plan Succeeded", "plan Superseded", "step Verified ", "wake", "watch that stands still",
		},
		100: {
			"effect", "grant", "takeover", "attempts", "result Response", "result Recovered",
			"plan Succeeded", "plan PartialSuccess", "plan Failed", "plan Canceled", "plan Superseded",
			"effect Reconcile Deployment", "effect Rollback Deployment", "effect Scale Deployment", "effect Restart Deployment", "effect Reconcile Service",
			"effect that makes a Deployment", "effect within hours", "watch that stands still", "wake",
			"step Verified ", "step Failed TargetMoved",
			"step Skipped Stopped", "step Skipped NotAllowed", "step Skipped TargetReplaced",
		},
		300: {
			"step Failed TargetReplaced", "step Skipped TargetMoved", "effect Rollback Service", "effect that makes a Service", "fence",
			"step Skipped AlreadyDesired", "step Skipped Terminating", "step Skipped DeadlineExceeded", "breaker that opens", "plan that waits for long", "decision that is withdrawn",
		},
		1000:  {"probe", "step Failed Stopped", "step Fenced Stopped", "step Skipped Claimed", "step Skipped RevisionDamaged", "doze before a creation"},
		20000: {"claim that an executor left"},
	}
	for enough, all := range want {
		for _, what := range all {
			if seeds >= enough && seen[what] == 0 {
				t.Errorf("in %d seeds there was never: %s", seeds, what)
			}
		}
	}
}

// creationSeeds are run of worlds in which every target is made again.
const creationSeeds = defaultSeeds / 8

// D4 of the review of remediation: a process that stood still between its decision and its
// request made an object after its plan was canceled. In most worlds nothing is made.
func TestAProcessThatDozesMakesNothingTooLate(t *testing.T) {
	world.Prepare()
	var mu sync.Mutex
	seen := map[string]int{}
	each(t, 2_000_000, creationSeeds, func(t *testing.T, seed uint64) bool {
		report := run(t, seed, world.Options{Creations: true})
		mu.Lock()
		defer mu.Unlock()
		for what, times := range report.Seen {
			seen[what] += times
		}
		if len(report.Broken) > 0 {
			t.Errorf("%s\nreplay it with -run TestPromisesHoldWhateverHappens -sim.creations -sim.seed %d", report, seed)
		}
		return len(report.Broken) == 0
	})
	for _, what := range []string{"doze before a creation", "creation that is too late", "effect that makes a Deployment", "plan Canceled"} {
		if seen[what] == 0 && creationSeeds >= 50 {
			t.Errorf("in %d seeds there was never: %s", creationSeeds, what)
		}
	}
	t.Logf("%d seeds: %v", creationSeeds, seen)
}

// A report of a broken promise is worth nothing if its seed does not break it
// again.
func TestASeedIsAlwaysTheSameRun(t *testing.T) {
	world.Prepare()
	digests := map[string]uint64{}
	for seed := range uint64(12) {
		first, second := run(t, seed, world.Options{Rough: seed%2 == 0}), run(t, seed, world.Options{Rough: seed%2 == 0})
		if first.Digest != second.Digest {
			t.Errorf("seed %d: %d messages, then %d, and other ones", seed, first.Messages, second.Messages)
		}
		if other, known := digests[first.Digest]; known {
			t.Errorf("seeds %d and %d are the same run", other, seed)
		}
		digests[first.Digest] = seed
	}
}
