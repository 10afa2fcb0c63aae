// SPDX-License-Identifier: Apache-2.0

// Package guarded is a namespace with guarded Deployments, as tests of the
// assessor see it: [Cluster.NewNamespace] makes one, users who may do everything
// write to it, and its Baselines are read as one line of text, see [Describe]. What
// waits is bounded by the patience of the tests' package. [Main] runs the tests of such
// a package on an API server of their own, with the chart in place.
package guarded
