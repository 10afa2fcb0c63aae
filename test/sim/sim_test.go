// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"maps"
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
	seeds = flag.Int("sim.seeds", 0, "how many seeds are run; 0: 2,000, and 100 under the race detector")
	only  = flag.Int64("sim.seed", -1, "run this seed alone, and tell all of it")
	find  = flag.String("sim.find", "", "tell which seeds have this among what was seen")
	all   = flag.Bool("sim.all", false, "go on after a promise is broken, and tell only which ones are")
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
		report := run(t, uint64(*only), world.Options{})
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
	}
	each(t, 0, n, func(t *testing.T, seed uint64) bool {
		report := run(t, seed, world.Options{})
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
		100: {
			"effect", "grant", "takeover", "attempts", "result Response", "result Recovered",
			"plan Succeeded", "plan PartialSuccess", "plan Failed", "plan Cancelled", "plan Superseded",
			"step Verified ", "step Failed TargetMoved", "step Failed TargetReplaced", "step Failed Stopped",
			"step Skipped Stopped", "step Skipped NotAllowed", "step Skipped Claimed", "step Skipped TargetReplaced", "step Skipped TargetMoved",
		},
		2000: {"fence", "probe", "step Fenced Stopped", "step Skipped AlreadyDesired", "step Skipped Terminating", "step Skipped RevisionDamaged", "step Skipped DeadlineExceeded"},
	}
	for enough, all := range want {
		for _, what := range all {
			if seeds >= enough && seen[what] == 0 {
				t.Errorf("in %d seeds there was never: %s", seeds, what)
			}
		}
	}
}

// Each protection is there for something: without it a promise breaks, and the
// simulation has to notice. With it, nothing breaks in the very same run.
func TestEveryMutantBreaksAPromise(t *testing.T) {
	world.Prepare()
	for _, mutant := range world.Mutants() {
		t.Run(mutant.Name, func(t *testing.T) {
			var mu sync.Mutex
			var first *world.Report
			tried := 0
			each(t, 1_000_000, mutantSeeds, func(t *testing.T, seed uint64) bool {
				report := run(t, seed, world.Options{Mutant: mutant, Rough: true})
				mu.Lock()
				defer mu.Unlock()
				tried++
				if len(report.Broken) > 0 && (first == nil || seed < first.Seed) {
					first = report
				}
				return first == nil
			})
			if first == nil {
				t.Fatalf("nothing breaks in %d seeds", tried)
			}
			t.Logf("seed %d, after %d: %s", first.Seed, tried, first.Broken[0])
			if !slices.Contains(mutant.Breaks, first.Broken[0].Promise) {
				t.Errorf("it breaks %s, want one of %v", first.Broken[0], mutant.Breaks)
			}
			if real := run(t, first.Seed, world.Options{Rough: true}); len(real.Broken) > 0 {
				t.Errorf("the real executor breaks it too: %s", real)
			}
		})
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
