// SPDX-License-Identifier: Apache-2.0

// Package assess tests the assessor on a real API server: the binary's wiring
// ([assessor.Run]) under the chart's service account, roles and policies, real
// watches, and where it matters a real Redis. No webhook runs here: who wrote is
// known from the writer stamp alone, unless a test writes the records itself.
//
// The tests need KUBEBUILDER_ASSETS and a Helm 4 (make test-integration sets
// both); without them they fail.
package assess
