// SPDX-License-Identifier: Apache-2.0

// Package seed gives tests that choose at random the same choices in each quick run:
// such a test fails only after a change. A long run ([Long]) makes new choices, and a
// test that fails prints the seed that repeats its choices ([Variable]).
//
// Property tests have RAPID_SEED instead, which the package rapid reads.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

const (
	// Variable names the environment variable with the seed of all tests.
	Variable = "PLUMBLINE_SEED"
	// Long names the environment variable of the long run; its value there is 1.
	Long = "PLUMBLINE_LONG"
)

// Of chooses the seed of a test: usual in a quick run, a new one in a long run, or the
// one that [Variable] demands. A test that fails tells its seed.
func Of(tb testing.TB, usual uint64) uint64 {
	tb.Helper()
	chosen := usual
	switch demanded := os.Getenv(Variable); {
	case demanded != "":
		var err error
		if chosen, err = strconv.ParseUint(demanded, 10, 62); err != nil {
			tb.Fatalf("reading %s: %v", Variable, err)
		}
	case os.Getenv(Long) == "1":
		chosen = rand.Uint64() >> 2 //nolint:gosec // no secret; it fits into a flag with a sign
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the seed of the random choices was %d; %[2]s=%[1]d repeats them", chosen, Variable)
		}
	})
	return chosen
}

// Random makes the choices of a test.
func Random(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Of(tb, 1), 0)) //nolint:gosec // no secret
}
