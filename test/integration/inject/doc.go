// SPDX-License-Identifier: Apache-2.0

// Package inject tests injected pods where they have to work: a real API server with
// Pod Security takes every one of them, and a real Envoy runs with the arguments and
// the files that such a pod has.
//
// The tests need KUBEBUILDER_ASSETS and ENVOY, which `make test-integration` sets.
package inject
