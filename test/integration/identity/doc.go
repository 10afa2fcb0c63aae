// SPDX-License-Identifier: Apache-2.0

// Package identity tests who is let in as a proxy (pkg/traffic/identity) with the
// tokens, the keys and the reviews of a real kube-apiserver. There is no kubelet:
// pods are objects, and their tokens come from the API that a kubelet asks.
//
// The tests have the build tag integration.
package identity
