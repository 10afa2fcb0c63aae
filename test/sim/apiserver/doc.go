// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a Kubernetes API server in memory, for simulations.
//
// It is linearizable: every write has its place in one order, and [Server.History]
// tells that order with what was there before and after. What a request may rely
// on is as in the real one: uid, resourceVersion (one counter for everything),
// generation, preconditions, dry runs, /status and /scale, finalizers, and the
// Status of each refusal. The package conformance holds both against one table.
//
// A [Request] is a value, so that a scheduler can hold one back, lose it or
// deliver it twice; [Server.Do] carries it out at once and in full. [ReadRequest]
// and [Response.HTTP] lead from and to net/http, and [Server.Transport] is both
// together, for clients that need no scheduler.
//
// Left out: watches, server-side apply and strategic merge patches, discovery,
// defaults of built-in kinds, managedFields, the garbage collector. Who asks for
// one of the first three is refused. Who simulates watches is told of every write
// by [Server.Watch].
package apiserver
