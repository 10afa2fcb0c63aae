// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/address"
)

// Routed lists the destinations in the host's IPv4 routing tables.
func Routed() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	var destinations []netip.Prefix
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		destination, valid := netip.AddrFromSlice(route.Dst.IP.To4())
		ones, bits := route.Dst.Mask.Size()
		if valid && bits == 32 {
			destinations = append(destinations, netip.PrefixFrom(destination, ones))
		}
	}
	return destinations, nil
}

// Connect creates the link between the host and the network namespace of the
// process, with the host's end configured and routing the network's whole block.
func Connect(n address.Network, pid int) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = n.Link()
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: insideLink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("creating the link %s: %w", n.Link(), err)
	}
	if err := raise(n.Link(), n.Host()); err != nil {
		return err
	}
	link, err := netlink.LinkByName(n.Link())
	if err != nil {
		return fmt.Errorf("finding the link %s: %w", n.Link(), err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(n.Block()), Gw: n.Node().Addr().AsSlice()}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("routing %s to the cluster: %w", n.Block(), err)
	}
	return nil
}

// Disconnect removes the link, if it exists, and with it the host's routes. It
// must be called while the cluster lives: the kernel removes the link of a dead
// cluster by itself, a little later, and the name may by then be another's.
func Disconnect(n address.Network) error {
	link, err := netlink.LinkByName(n.Link())
	if err != nil {
		if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
			return nil
		}
		return fmt.Errorf("finding the link %s: %w", n.Link(), err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("removing the link %s: %w", n.Link(), err)
	}
	return nil
}
