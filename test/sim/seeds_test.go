// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim_test

// defaultSeeds are run when nobody says how many, and longSeeds in a long run.
const (
	defaultSeeds = 400
	longSeeds    = 20_000
)
