// SPDX-License-Identifier: Apache-2.0

// Package notifier tells people about remediation plans, by the channels that
// RemediationPolicies name, about rollouts, by those of Environments ([Releases]), and about
// drift, by those of guards ([Drifts]). Both the assessor (a plan was made, a person has to
// decide) and the executor (a plan began, ended, failed) have one.
//
//	policies ──▶ channels ──┐
//	                        ▼
//	event ──▶ [Notifier] ──▶ pkg/notify/deliver ──▶ chat, mail, webhooks
//	                        ▲
//	Secrets, at each attempt┘
//
// What is told is a matter of the policy's toggles, by which channels that of
// pkg/notify and its Route, how it is written that of
// pkg/notify, and how it travels that of its subpackage deliver. Here is
// what joins them with a cluster: the channels follow the policies, Secrets are
// read past any cache, outcomes are counted, and what was told is noted in Redis,
// where there is one, so that a restart does not tell it twice. Redis keeps nobody from
// being told: see [RedisSeen].
//
// Nothing here waits for a receiver, and nothing fails because of one.
package notifier
