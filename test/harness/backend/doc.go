// SPDX-License-Identifier: Apache-2.0

// Package backend stands for the pods behind a Service where there are none: servers
// on an address of this machine that is not loopback, because an EndpointSlice has
// none of those. What is sent there stays on the machine.
package backend
