// SPDX-License-Identifier: Apache-2.0

// Package storetest tests that a store keeps what [evidence.Store] promises, and
// has one in memory, with faults, for tests of what is built on a store.
//
// Adapter. It uses goroutines.
package storetest
