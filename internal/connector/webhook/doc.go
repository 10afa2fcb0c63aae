// SPDX-License-Identifier: Apache-2.0

// Package webhook carries splits out by a receiver of signed requests.
//
//	POST url                 the split, or its removal
//	GET  url/observe?...     the split in force
//	   │
//	   └── {"sequence": 7, "knowledge": "Proven", "shares": {...}, "outcomes": [...]}
//
// A request lasts ten seconds at most, and a look at a release is shorter, so at most one request of each release is
// under way, in a goroutine of its own. [Router.Observe] waits for the answer as long as its context permits. What an
// answer says of a split is a function without effects.
//
// Adapter.
package webhook
