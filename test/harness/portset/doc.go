// SPDX-License-Identifier: Apache-2.0

// Package portset has ports of the mesh for tests of connectors: one set for each feature of a split.
package portset
