// SPDX-License-Identifier: Apache-2.0

// Package clitest supports the tests of the plugin's commands: a cluster in memory with
// objects in every state ([Cluster]), and command lines that run on it.
//
// It is imported by tests alone.
package clitest
