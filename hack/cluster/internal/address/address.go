// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"fmt"
	"net/netip"
)

const (
	firstOctet = 192
	// Blocks is how many clusters one machine can run side by side: 10.192 to
	// 10.239, which leaves the ranges that other tools pick by default (10.0,
	// 10.42, 10.96, 10.128, 10.244) alone.
	Blocks = 48
)

// ErrExhausted is returned when every block overlaps a route of the host.
var ErrExhausted = errors.New("no free address block in 10.192.0.0 to 10.239.255.255")

// Network is the address plan of one cluster. It is a value: the same index
// always means the same addresses.
type Network struct {
	Index int `json:"index"` // 0 <= Index < Blocks
}

// Allocate returns the network with the lowest index whose block overlaps none
// of the destinations that the host already routes, default routes aside.
func Allocate(routed []netip.Prefix) (Network, error) {
	for index := range Blocks {
		network := Network{Index: index}
		if !overlapsAny(network.Block(), routed) {
			return network, nil
		}
	}
	return Network{}, ErrExhausted
}

func overlapsAny(block netip.Prefix, routed []netip.Prefix) bool {
	for _, destination := range routed {
		if destination.Bits() > 0 && destination.Overlaps(block) {
			return true
		}
	}
	return false
}

// Block covers every address of the cluster; the host's one route leads to it.
func (n Network) Block() netip.Prefix { return n.prefix(0, 16) }

// Pods is the range that the nodes' pod ranges are cut from.
func (n Network) Pods() netip.Prefix { return n.prefix(0, 17) }

// NodePods is the pod range of the first and only node: the controller manager
// hands out /24 ranges from the beginning of [Network.Pods].
func (n Network) NodePods() netip.Prefix { return n.prefix(0, 24) }

// Services is the range of ClusterIPs.
func (n Network) Services() netip.Prefix { return n.prefix(128, 18) }

// API is the ClusterIP of the Service "kubernetes": the first of the range.
func (n Network) API() netip.Addr { return n.address(128, 1) }

// DNS is the ClusterIP of CoreDNS.
func (n Network) DNS() netip.Addr { return n.address(128, 10) }

// Host is the host's end of the link, with the link's prefix length.
func (n Network) Host() netip.Prefix { return netip.PrefixFrom(n.address(255, 1), 30) }

// Node is the cluster's end of the link, with the link's prefix length. The API
// server and every NodePort listen there.
func (n Network) Node() netip.Prefix { return netip.PrefixFrom(n.address(255, 2), 30) }

// Link is the name of the host's network interface that leads to the cluster.
func (n Network) Link() string { return fmt.Sprintf("plumbline%d", n.Index) }

func (n Network) address(third, fourth byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(firstOctet + n.Index), third, fourth})
}

func (n Network) prefix(third byte, bits int) netip.Prefix {
	return netip.PrefixFrom(n.address(third, 0), bits)
}
