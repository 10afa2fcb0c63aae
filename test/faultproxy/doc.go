// SPDX-License-Identifier: Apache-2.0

// Package faultproxy is a proxy that tests put on the way from one process to
// another, to break that way as networks do: refuse it, delay it, hold it up,
// lose the answers, cut what is open, leave one side believing that it is open.
//
// [Start] listens on loopback and passes everything on. [Proxy.Set] changes what
// happens to bytes from then on, and [Proxy.Cut], [Proxy.HalfOpen] and
// [Proxy.Abandon] what becomes of the connections that are open at present. Bytes
// are neither changed nor put into another order: a process must be able to tell
// a fault of the way from a broken peer.
package faultproxy
