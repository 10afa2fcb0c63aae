// SPDX-License-Identifier: Apache-2.0

// Package replicas has the tests of several replicas of the discovery server in one
// process, on a real API server: tokens and pods are real objects, and real Envoys are
// connected to this replica and that one. What the one that leads knows of all of them
// is what is tested.
package replicas
