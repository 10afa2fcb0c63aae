// SPDX-License-Identifier: Apache-2.0

// Package abrelease has the tests of ABReleases on a real API server: a real Envoy
// sends real requests, and what it sends where is counted at the backends.
package abrelease
