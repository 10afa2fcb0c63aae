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

	"github.com/plumbline-dev/plumbline/test/sim/world"
)

var (
	seeds = flag.Int("sim.seeds", 0, "how many seeds are run; 0: 400, and 20 under the race detector; more with PLUMBLINE_LONG=1")
	only  = flag.Int64("sim.seed", -1, "run this seed alone, and tell all of it")
	find  = flag.String("sim.find", "", "tell which seeds have this among what was seen")
	all   = flag.Bool("sim.all", false, "go on after a promise is broken, and tell only which ones are")
	rough = flag.Bool("sim.rough", false, "have everybody interfere who may be needed for a protection to matter")
	hours = flag.Bool("sim.hours", false, "have every policy act at some hours alone")
	again = flag.Bool("sim.refused", false, "let requests that were refused arrive once more")
)

func TestMain(m *testing.M) {
	// Much is made and soon forgotten: collecting it less often is a fifth of the time.
	debug.SetGCPercent(400)
	m.Run()
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
	return world.Options{Rough: *rough, Hours: *hours, Refused: *again || fencesAfterRefusal && seed%8 == 7}
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
	n := uint64(*seeds)
	if n == 0 {
		n = defaultSeeds
		if os.Getenv("PLUMBLINE_LONG") == "1" {
			n = longSeeds
		}
	}
	each(t, 0, n, func(t *testing.T, seed uint64) bool {
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
	happened(t, n, seen)
}

// happened: a simulation in which nothing happens shows nothing.
func happened(t *testing.T, seeds uint64, seen map[string]int) {
	t.Helper()
	want := map[uint64][]string{
		20: {
			"effect", "grant", "takeover", "attempts", "result Response", "result Recovered",
			"plan Succeeded", "plan PartialSuccess", "plan Failed", "plan Cancelled", "plan Superseded",
			"effect Reconcile Deployment", "effect Rollback Deployment", "effect Restart Deployment", "effect Reconcile Service",
			"effect that makes a Deployment", "effect within hours", "watch that stands still", "wake",
			"step Verified ", "step Failed TargetMoved",
			"step Skipped Stopped", "step Skipped NotAllowed", "step Skipped Claimed",
		},
		100: {"effect Scale Deployment", "step Skipped TargetReplaced"},
		400: {"step Failed TargetReplaced", "step Failed Stopped", "step Skipped TargetMoved", "effect Rollback Service", "effect that makes a Service", "fence", "probe", "step Fenced Stopped", "step Skipped AlreadyDesired", "step Skipped Terminating", "step Skipped RevisionDamaged", "step Skipped DeadlineExceeded"},
	}
	for enough, all := range want {
		for _, what := range all {
			if seeds >= enough && seen[what] == 0 {
				t.Errorf("in %d seeds there was never: %s", seeds, what)
			}
		}
	}
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
