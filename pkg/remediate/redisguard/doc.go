// SPDX-License-Identifier: Apache-2.0

// Package redisguard keeps a copy of each RemediationLedger in Redis, which may
// refuse a step and never grants one.
//
// The ledger decides: a step writes when its entry is stored there, by one
// compare-and-swap in the API server (package ledger). The copy is asked before,
// so that a step which has no chance costs neither a write nor a conflict. What
// it says counts only when it says no:
//
//	Refused ──▶ the step waits
//	Allowed ──▶ the ledger is asked
//	Unknown ──▶ the ledger is asked
//
// Whatever Redis does, the steps that are granted are therefore steps that the
// ledger alone would have granted, had the others not come. It may be away, slow,
// flushed, full, older than it was, or lie; the worst is a refusal, and one that
// claims to last longer than a true one could is not believed.
//
// # The copy
//
// It is one hash per ledger, "<prefix>:mirror:{<name>/<uid>}", so it is there as a
// whole or not at all, and lies in one slot of a Redis cluster. A ledger that was
// deleted and made again has another uid, and with it another copy; the old one
// disappears by itself ([Lifetime]).
//
// Every call carries the sequence of the ledger that its caller has read:
//
//	the copy has            a question          Put
//	nothing                 Missing             is stored
//	a lower sequence        Behind              is stored
//	the same                an answer           is stored again: the same, or mended
//	a higher one            Stale               [ErrStale]
//
// Nothing else tells a copy that is good from one that is not: a server's run id
// stays over FLUSHALL, and what a replica missed when it was promoted is seen in
// the sequence alone. A call that is repeated does what it did before. Where the
// ledger is at hand, an answer that contradicts it has the copy put again.
//
// # Time
//
// The scripts ask no clock. Now is the caller's, who has it from the API server's
// answers, as the ledger decides by it: a Redis whose clock is off would otherwise
// forget entries early or keep them for longer. The one thing left to Redis's
// clock is when a copy disappears, and one that is gone is made again. Numbers are
// whole: seconds, as the ledger stores times, and counts.
//
// # Use
//
// [Mirror.Consult] is what an executor calls before it reserves, and [Mirror.Put]
// after every write of a ledger that was stored. A call takes 50 ms at most; after
// three that failed Redis is left alone for five seconds.
//
// Adapter. It uses Redis, the network, metrics and the clock.
package redisguard
