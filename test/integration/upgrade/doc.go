// SPDX-License-Identifier: Apache-2.0

// Package upgrade upgrades a real kube-apiserver under Plumbline, from the oldest
// Kubernetes that Plumbline supports to the newest one that the tests run, over the same
// etcd. 500 objects of all kinds that can be guarded lie there. Webhook, assessor and
// chart stay as they were: an object that the newer API server serves in another form is no drift.
//
// `make upgrade-long` builds the older API server and runs the tests. It runs the tests of
// package policies about service accounts on the older API server as well.
package upgrade
