// SPDX-License-Identifier: Apache-2.0

// Package restore bounds how often a router puts back weights that another writer changed: [Max] times in [Window].
// After that the router leaves the weights alone, so two writers do not undo each other forever.
package restore
