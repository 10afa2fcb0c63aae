// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector looks for what does not depend on a mutant, and would make these
// runs ten times as slow.

package sim_test

import (
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/test/sim/world"
)

// mutantSeeds bound the search for a run that a mutant breaks; each of today's is
// found within 160.
const mutantSeeds = 1500

// Each protection is there for something: without it its promise breaks, before any
// other one does, and the simulation has to notice. With it, nothing breaks in the
// very same run.
func TestEveryMutantBreaksItsPromise(t *testing.T) {
	world.Prepare()
	for _, mutant := range world.Mutants() {
		t.Run(mutant.Name, func(t *testing.T) {
			var mu sync.Mutex
			var first *world.Report
			tried, breaks := 0, map[string]int{}
			each(t, 1_000_000, mutantSeeds, func(t *testing.T, seed uint64) bool {
				report := run(t, seed, world.Options{Mutant: mutant, Rough: true})
				mu.Lock()
				defer mu.Unlock()
				tried++
				if len(report.Broken) > 0 {
					breaks[report.Broken[0].Promise]++
					if report.Broken[0].Promise == mutant.Breaks && (first == nil || seed < first.Seed) {
						first = report
					}
				}
				return first == nil
			})
			if first == nil {
				t.Fatalf("%s does not break first in %d seeds; what does: %v", mutant.Breaks, tried, breaks)
			}
			t.Logf("seed %d, after %d, which break %v: %s", first.Seed, tried, breaks, first.Broken[0])
			without := mutant.Without()
			if real := run(t, first.Seed, world.Options{Mutant: without, Rough: true}); len(real.Broken) > 0 {
				t.Errorf("the real executor breaks it too: %s", real)
			}
		})
	}
}
