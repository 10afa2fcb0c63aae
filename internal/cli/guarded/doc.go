// SPDX-License-Identifier: Apache-2.0

// Package guarded finds the objects that a command line names, and their Baselines.
//
// The builder of cli-runtime reads TYPE/NAME, so that arguments and errors are those of kubectl. [ResolveOne] gives the
// one object of a command, and [Select] the Baselines of many. [SendRequests] asks the assessor for something of
// many objects, and waits for all of it. The words about Baselines are in package wording.
package guarded
