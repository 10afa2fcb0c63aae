// SPDX-License-Identifier: Apache-2.0

// Package chart tests charts/plumbline as Helm 4 renders it: golden manifests for
// the values files in charts/plumbline/ci, refused values, the rights of every
// service account, the security of every pod, and that the documentation of the
// values is the one in values.yaml. How the API server takes the result is
// tested in test/integration/policies, how pods run in the e2e tests.
//
// UPDATE_GOLDEN=1 rewrites the golden files and docs/reference/chart.md.
package chart
