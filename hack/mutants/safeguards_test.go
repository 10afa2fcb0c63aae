// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/safeguard"
)

// newGate is a stand whose package has three safeguards: its unit tests notice the loss of
// the first one, the simulator the loss of the second one.
func newGate(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	s.write("m/p/p.go", `package p

// MayWrite tells whether a user may write.
func MayWrite(known, halted, late bool) bool {
	if !known {
		return false
	}
	if halted {
		return false
	}
	return !late
}
`)
	s.write("m/p/p_test.go", `package p

import "testing"

func TestAStrangerMayNotWrite(t *testing.T) {
	if MayWrite(false, false, false) {
		t.Error("a stranger may")
	}
}
`)
	s.write("m/sim/sim.go", "package sim\n")
	s.write("m/sim/sim_test.go", `package sim

import (
	"testing"

	"example.test/m/p"
)

func TestAHaltCounts(t *testing.T) {
	if p.MayWrite(true, true, false) {
		t.Error("a halt does not count")
	}
}

func TestTimeCounts(t *testing.T) {
	if p.MayWrite(true, false, true) {
		t.Error("the time does not count")
	}
}
`)
	s.write("safeguards.txt", `A stranger writes.
@ p/p.go
- if !known {
+ if false {

A write follows a halt.
@ p/p.go
- if halted {
- 		return false
- 	}
+ _ = halted

A write is late.
@ p/p.go
- return !late
+ return true
`)
	return s
}

func (s *stand) runList(args ...string) (string, error) {
	s.t.Helper()
	return s.run(append([]string{
		"--safeguards", filepath.Join(s.dir, "safeguards.txt"), "--simulator", "sim", "--simulator-flags", "-test.run=^TestAHaltCounts$",
	}, args...)...)
}

func TestUnitTestsAndThenTheSimulatorHaveToNoticeTheLossOfASafeguard(t *testing.T) {
	s := newGate(t)
	out, err := s.runList()
	if err == nil || err.Error() != "the loss of too many safeguards is not noticed" {
		t.Errorf("the error is %v", err)
	}
	s.want(out,
		"not noticed: p/p.go:11 A write is late.",
		"| p       | 1          | 1         | 0         | 1           | 66 %  |",
		"| all     | 1          | 1         | 0         | 1           | 66 %  |")
	if strings.Contains(out, "A stranger writes.") {
		t.Errorf("what was noticed is told:\n%s", out)
	}
}

func TestTheSafeguardsOfAPackageOrOfANameAreTriedAlone(t *testing.T) {
	s := newGate(t)
	out, err := s.runList("--match", "halt")
	if err != nil {
		t.Error(err)
	}
	s.want(out, "| all     | 0          | 1         | 0         | 0           | 100 % |")
	if out, err = s.runList("q"); err != nil {
		t.Error(err)
	}
	s.want(out, "| all     | 0          | 0         | 0         | 0           | 100 % |")
}

func TestAReasonWhyNothingNoticesIsHeldAgainstTheTests(t *testing.T) {
	s := newGate(t)
	list, err := os.ReadFile(filepath.Join(s.dir, "safeguards.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("safeguards.txt", strings.ReplaceAll(string(list), "+ if false {", "+ if false {\n= Nobody is a stranger.")+"= It is never late.\n")
	out, err := s.runList()
	if err != nil {
		t.Error(err)
	}
	s.want(out, "explained, but noticed: A stranger writes.", "| p       | 1          | 1         | 1         | 0           | 100 % |")
}

func TestAStaleEntryIsAnErrorBeforeAnythingIsTried(t *testing.T) {
	s := newGate(t)
	s.write("safeguards.txt", "A write is early.\n@ p/p.go\n- return !early\n+ return true\n\nA read is late.\n@ p/gone.go\n- a\n+ b\n")
	_, err := s.runList()
	if err == nil || !strings.Contains(err.Error(), `p/p.go has the text of "A write is early." 0 times, want once`) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnEntryThatDoesNotCompileIsAnError(t *testing.T) {
	s := newGate(t)
	s.write("safeguards.txt", "A write is late.\n@ p/p.go\n- return !late\n+ return 1\n")
	_, err := s.runList()
	if err == nil || !strings.HasPrefix(err.Error(), "building the tests of p with the mutants") || !strings.Contains(err.Error(), `mutant1:`) {
		t.Errorf("the error is %v", err)
	}
}

func TestEachSafeguardOfTheProjectIsWhereTheListSays(t *testing.T) {
	list, err := readFile("safeguards.txt", safeguard.ReadList)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d entries: %v", len(list), err)
	}
	s := safeguards{options: options{root: "../.."}, entries: map[mutation.Key]safeguard.Entry{}, numbers: map[mutation.Key]int{}}
	if err := s.mutate(list); err != nil {
		t.Error(err)
	}
	for i := range list {
		for _, path := range list[i].Packages {
			if found, err := filepath.Glob(filepath.Join("../..", path, "*_test.go")); err != nil || len(found) == 0 {
				t.Errorf("%q: %s has no tests: %v", list[i].Name, path, err)
			}
		}
	}
}
