// SPDX-License-Identifier: Apache-2.0

// Package admission holds the integration tests of the webhook: the real
// binary, a real kube-apiserver and etcd, a real redis-server, a real kubectl.
// There is no controller manager, so what controllers would do is not seen here.
//
// The tests need KUBEBUILDER_ASSETS (kube-apiserver, etcd, kubectl) and
// redis-server in PATH; `make test-integration` provides both.
package admission
