// SPDX-License-Identifier: Apache-2.0

// Package bluegreen decides what becomes of the standby of a step. A standby is a Deployment with
// the authorized body of the target, which answers the requests of the target while the target is
// repaired. An ABRelease without a rollout moves the requests, and owns the Deployment.
//
//	Preparing ──▶ Switching ──▶ Serving          [Serve]
//	    │             └────────────┴──▶ Returning ──▶ Draining ──▶ Removing ──▶ Removed   [Retire]
//	    └──────────────────────────────────────────────────────────────┘
//
// Each decision follows from the phase that is stored and from what was read since. So a process
// that dies between any two decisions is followed by one that comes to the same end. The way to the
// standby has a deadline in each phase. The way back has none, because each wait on it keeps
// requests with pods that answer them.
package bluegreen
