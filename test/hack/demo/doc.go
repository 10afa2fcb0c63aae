// SPDX-License-Identifier: Apache-2.0

// Package demo tests `make demo CLUSTER=current REGISTRY=...` as its user runs it:
// on a cluster that the demo did not make, with a registry that images must be
// pushed to and pulled from, with the cleaning up that its last words ask for, and
// with PLUMBLINE_LONG=1 twice. `make e2e-demo` runs it (build tag e2e).
package demo
