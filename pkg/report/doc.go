// SPDX-License-Identifier: Apache-2.0

// Package report shows the Baselines of a namespace as a report that tools of other makers
// read: an OpenReports Report (openreports.io/v1alpha1), or a PolicyReport
// (wgpolicyk8s.io/v1alpha2). It is pure.
//
// A report names objects, paths, writers and states, and no value of an object.
package report
