// SPDX-License-Identifier: Apache-2.0

// Package traffic says how requests are divided between the variations of a service,
// and nothing of any proxy.
//
// A [Split] says of which Service, by which headers and keys, and between which pods.
// Its [Shares] give each variation a share of [Total] basis points. The first one is
// the stable one; each other has a range reserved in which its share grows.
// [Shares.Layout] lays the shares out over the keys that visitors have, so that a share
// that grows only adds visitors: nobody is moved from one variation to another, and
// nobody back. [Clamp] takes the share of a variation that has no ready endpoints, and
// gives it back when it has had some for a while.
//
// A [Router] is told the whole split, and so needs to know of no proxy of ours.
//
// The package imports no client, no clock and no goroutine: what is, and when, are
// arguments.
package traffic
