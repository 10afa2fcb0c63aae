// SPDX-License-Identifier: Apache-2.0

// Package planningtest is a small guarded cluster for tests of what plans depend
// on: a [Cluster] is changed, and then read through a fake client.
package planningtest
