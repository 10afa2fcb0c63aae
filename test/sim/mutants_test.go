// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector looks for what does not depend on a mutant, and would make these
// runs ten times as slow.

package sim_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/sim/world"
)

const (
	// mutantsFrom is the first seed of the search for a run that a mutant breaks.
	mutantsFrom = 1_000_000
	// mutantSeeds bound that search; each of today's is found within 160.
	mutantSeeds = 1500
	// mutantsFile holds the seed that the last search found for each mutant.
	mutantsFile = "testdata/mutants.golden"
)

// Each protection is there for something: without it its promise breaks, before any
// other one does, and the simulation has to notice. With it, nothing breaks in the
// very same run. The quick run begins with the seed of mutantsFile, and searches only
// if the mutant no longer breaks its promise there.
func TestEveryMutantBreaksItsPromise(t *testing.T) {
	world.Prepare()
	known := knownSeeds(t)
	var found strings.Builder
	for _, mutant := range world.Mutants() {
		t.Run(mutant.Name, func(t *testing.T) {
			first := breaksAt(t, mutant, known)
			if first == nil {
				first = searchBreak(t, mutant)
			}
			fmt.Fprintf(&found, "%d %s\n", first.Seed, mutant.Name)
			without := mutant.Without()
			if real := run(t, first.Seed, world.Options{Mutant: without, Rough: true}); len(real.Broken) > 0 {
				t.Errorf("the real executor breaks it too: %s", real)
			}
		})
	}
	if golden.Updates() {
		golden.Check(t, mutantsFile, found.String())
	}
}

// knownSeeds reads mutantsFile. A long run, and one that writes the file, knows no seeds.
func knownSeeds(t *testing.T) map[string]uint64 {
	t.Helper()
	if golden.Updates() || os.Getenv(seed.Long) != "" {
		return nil
	}
	text, err := os.ReadFile(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]uint64{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		number, name, _ := strings.Cut(lines.Text(), " ")
		if known[name], err = strconv.ParseUint(number, 10, 64); err != nil {
			t.Fatalf("%s: %v", mutantsFile, err)
		}
	}
	return known
}

// breaksAt runs a mutant with its known seed. It returns nil if there is none, or if the mutant
// does not break its promise first in that run.
func breaksAt(t *testing.T, mutant world.Mutant, known map[string]uint64) *world.Report {
	t.Helper()
	at, is := known[mutant.Name]
	if !is {
		return nil
	}
	if report := run(t, at, world.Options{Mutant: mutant, Rough: true}); len(report.Broken) > 0 && report.Broken[0].Promise == mutant.Breaks {
		t.Logf("seed %d: %s", at, report.Broken[0])
		return report
	}
	t.Logf("hint: with seed %d it does not break %s; %s=1 writes %s with a seed that does", at, mutant.Breaks, golden.Variable, mutantsFile)
	return nil
}

// searchBreak returns the first run in which a mutant breaks its promise before any other one.
func searchBreak(t *testing.T, mutant world.Mutant) *world.Report {
	t.Helper()
	var mu sync.Mutex
	var first *world.Report
	tried, breaks := 0, map[string]int{}
	each(t, mutantsFrom, mutantSeeds, func(t *testing.T, seed uint64) bool {
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
	return first
}
