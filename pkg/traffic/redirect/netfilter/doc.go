// SPDX-License-Identifier: Apache-2.0

// Package netfilter gives the rules of package redirect to the kernel, and reads back
// what it has, by netlink: no program and no shell is needed.
//
// The kernel takes all rules in one transaction or none. While ours are replaced each
// connection meets the old ones or the new, so [Apply] can run again at any time.
//
// All is done in the network namespace of the calling thread.
//
// Adapter. It uses the network and the operating system.
package netfilter
