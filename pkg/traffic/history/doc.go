// SPDX-License-Identifier: Apache-2.0

// Package history keeps the last hour of runs: the counts of each variation in ten seconds, and the looks
// of the judge.
//
//	Measurement ──Count──▶ Book ──Read──▶ Series of a release
//	Assessment ───Note──────┘
//
// A [Book] is bounded per release and in all, and is kept in memory alone. A process that begins to lead begins
// a new one, and each series says since when it is whole. The decisions about a run never read a Book.
package history
