// SPDX-License-Identifier: Apache-2.0

// Package lifecycle brings clusters up, tells how they are, and takes them down.
//
// A cluster is one folder below the state folder, and one process, the first of
// its namespaces (package sandbox). A lock per name makes concurrent commands on
// one cluster wait for each other; one lock for the machine covers the choice of
// addresses. Everything else, such as which addresses are taken or whether a
// cluster lives, is asked of the kernel, so a crash leaves no wrong belief.
package lifecycle
