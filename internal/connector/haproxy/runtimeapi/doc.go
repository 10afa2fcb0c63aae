// SPDX-License-Identifier: Apache-2.0

// Package runtimeapi speaks to a HAProxy that runs, by its Runtime API
// (https://docs.haproxy.org/2.8/management.html#9.3) on a unix socket: to a process itself, or by the
// master to each of its workers, those of before a reload included.
//
// A command answers with text. Each parser here reads one answer, and refuses what it does not know.
package runtimeapi
