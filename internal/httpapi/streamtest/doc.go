// SPDX-License-Identifier: Apache-2.0

// Package streamtest has a network in memory, and listeners to streams of events, for tests on the clock of package synctest.
package streamtest
