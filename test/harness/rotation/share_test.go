// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// named is a test of a name, which keeps whether it was skipped.
type named struct {
	testing.TB
	name    string
	skipped bool
}

func (n *named) Name() string { return n.name }

func (n *named) Skipf(string, ...any) { n.skipped = true }

// selectTests sets go test -run, which has no effect on the tests that run already.
func selectTests(t *testing.T, pattern string) {
	t.Helper()
	f := flag.Lookup(runFlag)
	before := f.Value.String()
	if err := f.Value.Set(pattern); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) }) // it was set before
}

// runs says whether a test of a name runs.
func runs(t *testing.T, name string, of int) bool {
	t.Helper()
	n := &named{t, name, false}
	Share(n, of)
	return !n.skipped
}

func TestATestRunsInOneOfItsRotations(t *testing.T) {
	t.Setenv(seed.Long, "")
	selectTests(t, "")
	for of := 1; of <= 4; of++ {
		for i := range 8 {
			name, times := fmt.Sprint("TestOfNumber", i), 0
			for r := range of {
				t.Setenv(Variable, strconv.Itoa(7*of+r))
				if runs(t, name, of) {
					times++
				}
			}
			if times != 1 {
				t.Errorf("%s runs %d times in %d rotations", name, times, of)
			}
		}
	}
}

func TestTheLongRunRunsAllTests(t *testing.T) {
	t.Setenv(seed.Long, "1")
	selectTests(t, "")
	wantAll(t)
}

func TestARunThatSelectsTestsRunsAllOfThem(t *testing.T) {
	t.Setenv(seed.Long, "")
	selectTests(t, "TestOf")
	wantAll(t)
}

func wantAll(t *testing.T) {
	t.Helper()
	for i := range 8 {
		if name := fmt.Sprint("TestOfNumber", i); !runs(t, name, 4) {
			t.Errorf("%s does not run", name)
		}
	}
}

func TestRotationsHaveAboutAsManyTestsEach(t *testing.T) {
	const tests, of = 3000, 3
	var have [of]int
	for i := range tests {
		have[dueAt(fmt.Sprint("TestOfNumber", i), of)]++
	}
	for r, n := range have {
		if n < tests/of*9/10 {
			t.Errorf("rotation %d has %d of %d tests", r, n, tests)
		}
	}
}
