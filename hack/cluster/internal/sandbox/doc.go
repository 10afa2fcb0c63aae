// SPDX-License-Identifier: Apache-2.0

// Package sandbox keeps a whole cluster inside mount, network, pid, UTS and IPC
// namespaces of its own, so that the end of one process is the end of everything.
//
// Two processes work together. The launcher ([Launch]) runs on the host, for as
// long as bring-up takes. The first process ([Init]) is process 1 of the pid
// namespace and lives as long as the cluster: it sets the namespaces up, starts
// daemons when the launcher says so, and reaps. They speak JSON lines over two
// pipes. Until the launcher commits, a broken pipe makes the first process exit:
// a launcher that is killed takes its unfinished cluster with it.
//
// Two facts of the kernel carry the design. When process 1 of a pid namespace
// ends, the kernel kills every process in the namespace, however deep, and with
// the last of them go the mounts, the network interfaces and the packet filter
// rules. And a file lock is released when its holder ends, so the lock that the
// first process holds says whether the cluster lives, without trusting a process
// number that may have been given to somebody else.
package sandbox
