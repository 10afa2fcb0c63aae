// SPDX-License-Identifier: Apache-2.0

// Command listsemantics writes the table by which package canon knows what the
// order of a list means, from the structural schema that client-go carries.
//
// The table is part of the hash algorithm pl1. When a new client-go makes a
// different one, the test of this command fails: that difference is pl2, not a
// regeneration.
package main
