// SPDX-License-Identifier: Apache-2.0

// Package redirect runs the binary that sets the rules of redirect mode, in network
// namespaces of its own, and looks with real sockets where connections arrive:
//
//	pod                                   world
//	127.0.0.1:15001, [::1]:15001 ◀─┐      198.51.100.1, 2001:db8:2::1
//	app ── connect ── the rules ───┴────▶ 203.0.113.1, 2001:db8:3::1 (excluded)
//
// The tests have the build tag integration, and need root and the program ip.
package redirect
