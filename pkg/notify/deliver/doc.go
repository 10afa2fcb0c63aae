// SPDX-License-Identifier: Apache-2.0

// Package deliver sends the events of package notify: to chats by incoming
// webhook, by email, as signed webhooks and as CloudEvents.
//
// A [Notifier] has one bounded queue and one worker per channel, so a channel that
// hangs delays no other, and [Notifier.Notify] never waits. When a queue is full,
// the oldest event that asks nobody to act is dropped; what is dropped is counted.
//
// Delivery is at least once while the process lives: an attempt that failed for a
// reason that may pass is made again, with growing random pauses, until the
// deadline. An event is told twice only where it cannot be known whether the first
// time worked: the connection broke before the answer, or the process died before
// it wrote that down. Its id is the same each time. [Seen] is what survives a
// restart; without it only the memory of the process keeps from telling twice. What
// Seen says keeps no urgent event from being told: others may write to Seen.
//
// Where to send is partly said by tenants, so [Egress] holds for all channels:
// https alone, certificates checked, no redirects, no proxy, only public addresses
// unless allowed, and of an answer no more than a few KiB are read.
//
// URLs, passwords and keys are resolved for each attempt and are in no error, log
// or metric. Therefore errors of the network are not passed on as they are, since
// they name the URL, nor is anything that the receiver answers: a [Failure] has a
// [Cause] from a closed list and a status.
//
// An [Asker] makes one signed request by the same rules, and hands the answer on: gates of rollouts read it.
// The client of [NewReader] reads from programs by the same rules for addresses.
//
// Adapter. It uses the network, the operating system, logs, random numbers, the clock and
// goroutines.
package deliver
