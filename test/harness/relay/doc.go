// SPDX-License-Identifier: Apache-2.0

// Package relay carries TCP connections from one address to others, as a Service does. A
// test changes where connections go, and breaks connections that are open.
package relay
