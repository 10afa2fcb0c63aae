// SPDX-License-Identifier: Apache-2.0

// Package report writes a report of each namespace with guarded objects, as package
// pkg/report builds it, in the formats that the installation chooses.
//
// A change of a Baseline leads to one write at most, [Interval] later, however many
// Baselines of the namespace change meanwhile. A report that another tool has made under
// the same name stays as it is.
package report
