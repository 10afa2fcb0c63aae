// SPDX-License-Identifier: Apache-2.0

// Package injection tests how pods get their proxy: a real API server calls the real
// webhook by the configuration that the chart installs, and the pods are made by the
// real controllers. What is in an injected pod, and that an Envoy runs with it, is
// tested in package inject beside this one.
//
// The tests need KUBEBUILDER_ASSETS and HELM, which `make test-integration` sets.
package injection
