// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim_test

// defaultSeeds are run when nobody says how many.
const defaultSeeds = 2000

const mutantSeeds = 1500
