// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"flag"
	"hash/fnv"
	"os"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// Share runs a test in one of so many successive rotations, and skips the test in the
// others. The long run ([seed.Long]) runs every test, and so does go test -run. The name
// of the test decides, so that a new test moves no other one.
func Share(tb testing.TB, of int) {
	tb.Helper()
	if os.Getenv(seed.Long) == "1" || flag.Lookup(runFlag).Value.String() != "" {
		return
	}
	r, err := FromEnvironment()
	if err != nil {
		tb.Fatal(err)
	}
	if due := dueAt(tb.Name(), of); r%of != due {
		tb.Skipf("one rotation in %d runs this test, such as %s=%d; %s=1 runs all", of, Variable, due, seed.Long)
	}
}

// runFlag is the flag -run of go test, as a test binary has it.
const runFlag = "test.run"

// dueAt returns the first rotation that runs the test of a name.
func dueAt(name string, of int) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % uint32(of)) //nolint:gosec // less than of
}
