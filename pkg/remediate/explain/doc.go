// SPDX-License-Identifier: Apache-2.0

// Package explain says why a policy would put a drift back, or not, and when.
//
// [Of] goes through every gate that is between a drift and its repair, in the
// order in which they are asked: those of the policy and the planner, and those of
// the ledgers. It asks all of them, also behind one that is closed, so that a
// person sees at once what has to change. What could not be read is Unknown, and
// then so is the verdict, unless something else says no for good.
//
// Everything here is a function from values to values, and writes nothing.
package explain
