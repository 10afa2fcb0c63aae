// SPDX-License-Identifier: Apache-2.0

// Package specguard is the domain of the spec guard: who may change what
// (guards), what a write is (verdict), and what of an object is still as it was
// authorized (Baselines). It is pure: values in, values out. It knows no client,
// no clock and no goroutine; package admit and the assessor's controllers carry
// its decisions out.
//
// Three ways in:
//
//   - [Compile] makes a guard ready, [NewGuardSet] indexes all of them, and
//     [GuardSet.Rules] says what they demand together of one object. Where guards
//     meet, the stricter holds.
//   - [Judge] is admission's question: does any of this write become drift, and
//     what is the writer to be told? It never refuses.
//   - [Step] is the assessor's: from what was known of an object ([State]), what
//     is observed now ([Observation]), and the webhook's [WriteRecord]s follow the
//     next state and the [Effect]s to carry out.
//
// Four rules carry Step:
//
//   - The authorized body moves only by what a trusted writer is proven to have
//     written, path by path, or by an accept that names the hash. Never by time,
//     never by a read that failed, never by a record alone.
//   - The proof is the writer stamp, which the API server itself stores with the
//     object. A record of the webhook explains: it accuses, or excuses a value for
//     as long as that value stands (a [v1alpha1.Mask]).
//   - Every difference from the authorized body is a finding or masked. So there
//     are no findings if and only if the observed hash is the authorized one.
//   - What cannot be known is unknown. An unseen gap of several writes authorizes
//     nothing.
//
// Why it is so, with the cases that decided it, is in
// docs/designs/0002-attribution.md. The scripts in testdata/scenarios show every
// rule at work and read as prose; start with only_changed_paths.txt.
//
// Below it: canon is the canonical form and hash of a body, diff the differences
// of two bodies.
package specguard
