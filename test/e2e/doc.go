// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Plumbline on a whole cluster: real API server, controllers,
// kubelet, pods, Redis, kubectl and Helm. `make e2e` brings the cluster up under
// a name of its own, so that the demo's is never touched, and removes it after;
// KEEP=1 leaves it running. PLUMBLINE_LONG=1 has the demo tell its story twice.
//
// Stories that share nothing but the cluster are in TestOnRealPods, side by side. What
// stops something that others use is a test of its own before or after it.
package e2e
