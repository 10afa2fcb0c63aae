// SPDX-License-Identifier: Apache-2.0

// Package elected is what every part of a process has that works under a lease of
// its own: the kinds it knows, a manager that works only while it leads, and a
// gate that opens when its caches are synced.
//
// Two parts in one process have two managers and two leases, and share nothing
// but the process: one that loses its lease ends it, and so the other. Where the
// process has more to do than to lead, [Part.Again] starts the manager anew.
package elected
