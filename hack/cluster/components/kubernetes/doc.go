// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is etcd and every Kubernetes daemon of the local cluster
// in one binary. The name it is called by (or, called as "kubernetes", its
// first argument) picks the component, so the cache folder holds one file and
// a symbolic link per component.
//
// One binary instead of six costs a third of the disk, links once, and lets the
// kernel share the text pages of all daemons of all clusters on the machine.
// kubectl is built beside it as a binary of its own, because it starts often
// and must not pay for the daemons' package initialization.
package main
