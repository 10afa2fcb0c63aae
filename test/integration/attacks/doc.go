// SPDX-License-Identifier: Apache-2.0

// Package attacks does to Plumbline what an attacker would: a pod that reaches
// the webhook's port, a tenant with the roles view, edit or admin in a namespace,
// somebody with a strange name, the holder of a stolen token. The name of a test
// is its result. docs/reference/threats.md lists them with those that other
// packages hold.
//
// Everything is real but the cluster's network: an API server with the chart's
// kinds, roles, policies and webhook configurations, both processes as built
// binaries under the tokens of their own service accounts, and a Redis with the
// chart's user. The webhook is reached by address, for there is no Service.
//
// The tests need KUBEBUILDER_ASSETS and a Helm 4 (make test-integration sets
// both), and redis-server; without them they fail.
package attacks
