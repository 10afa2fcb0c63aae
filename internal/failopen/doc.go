// SPDX-License-Identifier: Apache-2.0

// Package failopen finds out when the API server let writes pass without asking
// the webhook, and has what was written then looked at again.
//
// The webhook's failurePolicy is Ignore, so nobody is stopped while it is away,
// and nothing is lost: the watch finds every change. A window is worth knowing
// all the same. In it no hash is stamped, no writer is warned, and who scaled or
// deleted is not recorded.
//
// There are three kinds of evidence, none complete by itself:
//
//	endpoints  the webhook's Service had no ready endpoint
//	lease      no replica renewed the webhook's Lease
//	apiserver  the API server counted calls that it went on without
//
// [Signal] and [Counters] are pure: samples go in, [Window]s come out. [Watcher]
// takes the samples, keeps the figures and starts a [Sweep] when a window ends.
// A read that failed is no sample: it neither opens nor closes anything.
package failopen
