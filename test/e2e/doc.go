// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Plumbline on a whole cluster: real API server, controllers,
// kubelet, pods, Redis, kubectl and Helm. `make e2e` brings the cluster up under
// a name of its own, so that the demo's is never touched, and removes it after;
// KEEP=1 leaves it running.
package e2e
