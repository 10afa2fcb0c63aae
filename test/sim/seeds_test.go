// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim_test

// defaultSeeds are run in the quick run.
const defaultSeeds = 330
