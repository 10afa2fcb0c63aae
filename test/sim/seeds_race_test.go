// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim_test

// Seeds are fewer here: the race detector makes each ten times as slow, and what it
// looks for does not depend on the seed. No mutant is run.
const (
	defaultSeeds = 20
	longSeeds    = 100
)
