// SPDX-License-Identifier: Apache-2.0

// Package details carries what the webhook saw of each write to the assessor,
// through one Redis stream.
//
// The Writer sits in the webhook: Enqueue never blocks and never fails an
// admission; a full queue or an absent Redis costs the record, which is counted.
// The Reader sits in the assessor: Next reads on from a Position and says when
// records may have been lost in between (Batch.Gap). A read has three results:
// entries are a value, an empty batch is absence, an error is unknown.
//
// The stream holds hints for at most 24 hours and may be flushed at any time.
// Nothing in it authorizes anything; see specguard.WriteRecord.
//
// Redis is not trusted to be one. The client library makes room for whatever
// length it is told, so every answer is looked through before the library sees
// it: one that is too long, too deep, or not of version 2 of the protocol is an
// error, and ends the connection.
//
// The stream's key is "<prefix>:details"; every entry has one field "r" with the
// JSON of a specguard.WriteRecord.
//
// Adapter. It uses Redis, the network, the operating system, logs, metrics and the clock.
package details
