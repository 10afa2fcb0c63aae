// SPDX-License-Identifier: Apache-2.0

// Package packet puts the records of one plan and the bodies that they name together, as an
// auditor reads them: what drifted, by which policy and plan it was put back, what was written,
// who asked for it, and how long it took.
//
// A [Packet] is made from signed records and from bodies with the digests that these records
// name. It asks neither a cluster nor a clock, so the same records give the same packet after
// plan, policy and object are gone. A body that is missing or is not believed is told as such,
// and all else is told as far as the records alone say it.
package packet
