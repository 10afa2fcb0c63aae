// SPDX-License-Identifier: Apache-2.0

// Package releasework runs the executor with the rights and policies of the chart on a real API
// server, and has it carry ReleaseWorks out. The test stands in for the discovery server.
package releasework
