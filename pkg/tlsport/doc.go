// SPDX-License-Identifier: Apache-2.0

// Package tlsport serves TLS on a port that strangers reach: it bounds connections and handshakes,
// and shares the processor out among the addresses that call. Whoever begins a handshake and ends
// none spends next to nothing on it, and who computes it pays.
//
//	accept ──▶ gate: a place of an address ──▶ turns: a processor, address by address ──▶ Accept
//
// Adapter. It uses the network, logs, metrics, the clock and goroutines.
package tlsport
