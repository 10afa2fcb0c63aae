// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/sim/world"
)

// aimedFrom is the first seed of the short worlds.
const aimedFrom = 3_000_000

// leastAimed is how many short worlds a rare case has in the quick run, once it was met.
const leastAimed = 20

// often says how many short worlds a rare case has at most, and how often it has to be met. The
// quick run has few of them; the long run goes on until each case was met 100 times.
func often() (worlds uint64, times int) {
	if os.Getenv(seed.Long) != "" {
		return 4000, 100
	}
	return defaultSeeds / 12, 1
}

// A promise about what is rare is tried only if what is rare happens. Each case has short
// worlds of its own.
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
	worlds, enough := often()
	seen, ran := map[string]int{}, 0
	each(t, from, worlds, func(t *testing.T, seed uint64) bool {
		report := run(t, seed, world.Options{Aim: &aim})
		mu.Lock()
		defer mu.Unlock()
		ran++
		if len(report.Broken) > 0 {
			t.Errorf("%s\nreplay it with -run 'TestRareCasesAreMetOften/%s' and PLUMBLINE_SEED=%d", report, aim.Name, seed)
			return false
		}
		met := true
		for _, what := range aim.Meets {
			seen[what] += report.Seen[what]
			met = met && seen[what] >= enough
		}
		return !met || enough == 1 && ran < leastAimed
	})
	t.Logf("%d worlds: %v", ran, seen)
	for what, times := range seen {
		if times < enough && worlds > 20 {
			t.Errorf("in %d worlds there was %d times: %s; want %d", ran, times, what, enough)
		}
	}
	return seen
}
