// SPDX-License-Identifier: Apache-2.0

// Package identity says which pod is at the other end of an xDS stream.
//
// A proxy sends a service account token that the kubelet has put into its pod, with
// an audience of its own ([Audience]). Nothing else that it says about itself is
// believed, its node id least of all.
//
//	token ──▶ form, audience, times ──▶ signature ──▶ pod in the cache ──▶ Proxy
//	               │ refused               │ refused        │ not there
//	               ▼                       │ key unknown    ▼
//	             Error                     └──────────▶ TokenReview ──▶ Proxy or Error
//
// # What costs what
//
// A token is verified with the public keys of the API server, here, in about a tenth
// of a millisecond. The API server is asked for two things only: whether a pod is
// there that the cache does not know yet, and about tokens whose key is unknown. For
// each of the two there is a bound of its own ([Limits]), so that a flood of invented
// tokens takes nothing from the proxies of new pods. Over the bound a token is
// neither good nor bad, it is [ReasonBusy]; nobody queues. The keys are read again
// for a token with an unknown one and when they are five minutes old, one read at a
// time, and every ten seconds at most.
//
// The memory is bounded too, and is kept by the hash of the token: the answers
// to reviews, for five seconds, and that a signature is good, until the keys are read
// again. A proxy shows its token for each of its two streams. Its pod, audience and
// times are looked at each time. A token that was refused here is not remembered.
//
// # When the API server is away
//
// The keys that were read are kept, so proxies of known pods are let in. The others
// get [ReasonUnavailable]. Who starts without keys lets in nobody.
//
// # What is left to the caller
//
// A [Proxy] was there when it was verified. A token that was shown once is not asked
// for again on the same stream, so the caller ends a stream when its pod goes, or
// when the pod has not come into its cache some seconds after: the API server itself
// believes a token for ten seconds after the deletion of its pod, if it has seen it
// before.
//
// Adapter. It uses the Kubernetes API, logs, the clock and goroutines.
package identity
