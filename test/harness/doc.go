// SPDX-License-Identifier: Apache-2.0

// Package harness drives a whole cluster the way a person does: with kubectl and
// helm, as several users. The demo and the end-to-end tests share it, so that
// what the demo shows is what the tests hold.
package harness
