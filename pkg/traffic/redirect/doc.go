// SPDX-License-Identifier: Apache-2.0

// Package redirect says which rules in a pod's network send the TCP connections that
// begin in it to the proxy beside it. It is a function of a Config and touches
// nothing; package netfilter below it gives the rules to the kernel.
//
//	Config ──▶ Rules ──▶ Ruleset ──▶ netfilter.Apply ──▶ the kernel
//	                        ▲                               │
//	                        └──────── netfilter.Read ◀──────┘
//
// The kernel asks the rules once for each connection, at its first packet, and the
// first that matches decides. Whatever is not the beginning of an outbound TCP
// connection stays as it is: UDP and all other protocols, what ends in the pod itself,
// connections that come from outside, and those that were open before the rules.
//
// A redirected connection has 127.0.0.1, or ::1, and the capture port as its new
// destination, where nobody outside of the pod can connect. The proxy asks the kernel
// for the first one (SO_ORIGINAL_DST), and is known by its user, so that its own
// connections leave.
//
// What a plugin of the network translates before a packet is made, as an eBPF program
// does at connect(2) for the address of a Service, has lost that address here: the
// proxy sees a pod's, and passes the connection on untouched.
package redirect
