// SPDX-License-Identifier: Apache-2.0

// Package kinds tests the kinds of plumbline.dev on a real API server: what
// their schemas and rules accept, what they refuse and which field the refusal
// names, and what kubectl shows of them.
//
// Nothing here looks into the CRD files; a rule counts only when the API server
// enforces it. The tests need KUBEBUILDER_ASSETS, a directory with etcd,
// kube-apiserver and kubectl, which `make test-integration` sets.
package kinds
