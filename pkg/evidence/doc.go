// SPDX-License-Identifier: Apache-2.0

// Package evidence leaves one signed record of every step and every decision of
// a remediation, and proves later that the records are whole.
//
// A [Record] says what happened to one target in one step, or what was decided
// about a plan. [Seal] writes it as an in-toto Statement in a DSSE envelope,
// signed with Ed25519; [Open] checks the signature and then reads the very
// bytes that were signed, and only if they are of this package's type.
//
// The records of one policy form a chain: each has the next number and the
// digest of the one before. A [Writer] appends to it. The place of a record in
// the [Store] is its number, created only if nothing is there, so two writers
// cannot both take it. How far the chain goes is a [Head], and the caller keeps
// it in etcd: whoever can write to the store could otherwise cut off the end
// unseen. A writer that died between the record and the head costs nothing:
// [Writer.CatchUp] finds what is there, and appending the same record again
// succeeds.
//
// A record holds digests and no contents. The contents, such as the policy and the plan, are
// each stored once beside the chain, under their digest ([Writer.Keep]), before the record that
// names them. [ReadBody] believes a body only if it has the digest that was asked for.
//
// [Verify] reads chains again and names what is wrong with them, record by
// record: damaged, altered, signed by an unknown key, missing, in the wrong
// place, told twice, unknown to the plans or unknown to the store. [Join]
// compares records with the API server's audit log ([ReadAudit]): writes without
// evidence, evidence without writes, more than one write in a step.
//
// This package holds no clock, no goroutine and no connection. The stores are
// in package bucket (S3, and the choice by URL) and package volume (a directory).
// The format, exact enough to check a record with openssl and jq alone, is in
// docs/reference/evidence.md.
package evidence
