// SPDX-License-Identifier: Apache-2.0

// Package address divides private address space among the clusters of one
// machine.
//
// A cluster has one /16 block of 10.192.0.0/10 for everything, so that the host
// needs one route to reach its pods, its Services and its node, and so that two
// clusters differ in one number, the index:
//
//	10.(192+index).0.0/17     pods, one /24 per node
//	10.(192+index).128.0/18   Services; .128.1 is the API, .128.10 is DNS
//	10.(192+index).255.0/30   the link: .1 is the host, .2 is the node
//
// Which indexes are taken is not written down anywhere: it is read from the
// kernel's routing table, which cannot disagree with itself after a crash and
// also shows what belongs to others, such as a VPN.
package address
