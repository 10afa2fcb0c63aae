// SPDX-License-Identifier: Apache-2.0

// Package repair says what a step of a remediation plan sends to the API server.
//
// [Write] takes a target as it was read, byte for byte, and gives it back with
// nothing changed but the drifted paths and the marks by which the audit log is
// joined with the evidence. It keeps uid and resourceVersion, so a PUT of it is
// stored only over the very version that was read. [Creation] is for a target
// that is gone, [Fence] for one that an older request must not reach any more.
//
// [Standard] is what a target is measured by; its hash says whether the target
// is as the plan found it, or as the plan leaves it.
//
// Everything here is a function from values to values: a preview makes the same
// bytes as the executor.
package repair
