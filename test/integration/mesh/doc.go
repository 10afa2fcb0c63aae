// SPDX-License-Identifier: Apache-2.0

// Package mesh has the tests of the discovery server on a real API server: Services,
// EndpointSlices and Pods are real objects, tokens are those that the API server
// makes for a pod, and a real Envoy sends real requests.
package mesh
