// SPDX-License-Identifier: Apache-2.0

// Package notify says what people are told about remediation plans, rollouts and drift, and
// how it is written for each kind of channel.
//
// An [Event] is one thing that happened to a plan, a release or guarded objects. [SlackMessage],
// [EmailMessage], [WebhookPayload] and [CloudEvent] render it; [Sign] signs a
// webhook and [ParseMailEndpoint] reads what a mail server's Secret holds. [Route]
// names the channels that are told of an event. A [Channel] is where to: it holds no
// secret, only references to them, and [Channel.Validate] tells what is wrong with it
// by field. [Retry] says when a delivery that failed is tried again.
//
// Names of objects, users and reasons come from whoever may write to the
// cluster. In a chat they can mention nobody, link nowhere and format nothing; in
// an email they cannot add a header. Every field and every message is bounded.
//
// All of it is functions on values: no client, no clock, no goroutine. Below, package
// deliver sends, and package drift decides when drift is told.
package notify
