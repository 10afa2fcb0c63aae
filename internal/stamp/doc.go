// SPDX-License-Identifier: Apache-2.0

// Package stamp knows since when the writer stamps of guarded objects are
// evidence: the MutatingAdmissionPolicy that sets them can be deleted and made
// again, and in between anybody writes the annotation, or leaves the one of the
// writer before.
//
// [Policy] is asked by the controller of baselines before a stamp decides
// anything. docs/designs/0002-attribution.md has the rule.
package stamp
