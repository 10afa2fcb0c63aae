// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/sim/world"
)

const (
	// metOften is how often each rare case has to be met.
	metOften = 100
	// aimedSeeds bound the short worlds of one case, and aimedFrom is the first of them.
	aimedSeeds = defaultSeeds
	aimedFrom  = 3_000_000
)

// A promise about what is rare is tried only if what is rare happens. Each case has short
// worlds of its own, until it was met often enough.
func TestRareCasesAreMetOften(t *testing.T) {
	world.Prepare()
	met := map[string]int{}
	from := seed.Of(t, aimedFrom)
	for _, aim := range world.Aims() {
		t.Run(aim.Name, func(t *testing.T) { maps.Copy(met, meets(t, aim, from)) })
	}
	for _, what := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%8d %s", met[what], what)
	}
}

// meets runs short worlds of a case, and counts how often the case was met.
func meets(t *testing.T, aim world.Aim, from uint64) map[string]int {
	t.Helper()
	var mu sync.Mutex
	seen, ran := map[string]int{}, 0
	each(t, from, aimedSeeds, func(t *testing.T, seed uint64) bool {
		report := run(t, seed, world.Options{Aim: &aim})
		mu.Lock()
		defer mu.Unlock()
		ran++
		if len(report.Broken) > 0 {
			t.Errorf("%s\nreplay it with -run 'TestRareCasesAreMetOften/%s' and PLUMBLINE_SEED=%d", report, aim.Name, seed)
			return false
		}
		often := true
		for _, what := range aim.Meets {
			seen[what] += report.Seen[what]
			often = often && seen[what] >= metOften
		}
		return !often
	})
	t.Logf("%d worlds: %v", ran, seen)
	for what, times := range seen {
		if times < metOften && aimedSeeds >= 400 {
			t.Errorf("in %d worlds there was %d times: %s; want %d", ran, times, what, metOften)
		}
	}
	return seen
}
