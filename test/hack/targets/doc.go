// SPDX-License-Identifier: Apache-2.0

// Package targets tests that what `make` promises is kept: checks fail when they
// must and say what to do, and the list of targets is complete. Each test works on
// a copy of the repository, breaks one thing in it, and runs the command that a
// person runs.
package targets
