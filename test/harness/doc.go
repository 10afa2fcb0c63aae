// SPDX-License-Identifier: Apache-2.0

// Package harness drives a whole cluster the way a person does: with kubectl and
// helm, as several users. The demo and the end-to-end tests share it, so that
// what the demo shows is what the tests hold.
//
// The packages below it are what the integration tests share: apiserver starts a
// real API server and installs the chart on it, server starts our binaries and
// Redis, child ends processes with the test that started them, guarded is a namespace
// whose Deployments are guarded, netns makes networks that lose packets, poll waits, waits records each wait, seed makes random
// choices that can be repeated, rotation chooses the part of a long test that a quick
// run makes, failpoint kills and disturbs the executor, golden compares with committed
// files, issuer logs users in by OpenID Connect, rendered runs Helm on the chart, and replay sends recorded admission reviews at a rate.
package harness
