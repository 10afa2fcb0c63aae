// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Egress says where notifications may go, for all channels of an installation:
// whoever writes a channel cannot widen it. The zero value permits https and mail
// over TLS to public addresses.
type Egress struct {
	// PlainHTTP permits http:// beside https://.
	PlainHTTP bool
	// Allowed are networks that are not public and may be reached all the same,
	// such as that of a chat server in the cluster. Link-local and multicast
	// addresses and those of the clouds' metadata services are refused even so.
	Allowed []netip.Prefix
}

// never are addresses at which clouds hand out credentials: Amazon's over IPv6,
// Alibaba's, Oracle's older one. The usual 169.254.169.254 is link-local.
var never = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
}

// special are the networks of IANA's special-purpose registries that are not
// globally reachable, within what else counts as unicast.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3")
	// nat64 carries an address of IPv4 in its last four bytes (RFC 6052); a
	// cluster without IPv4 reaches all of it that way.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// permits says whether an address may be connected to.
func (e Egress) permits(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || slices.Contains(never, addr) {
		return false
	}
	return within(e.Allowed, addr) || public(addr)
}

func public(addr netip.Addr) bool {
	if addr.Is6() && !globalUnicast6.Contains(addr) {
		return false
	}
	return !within(special, addr)
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// control is asked for each address after its name was resolved and before the
// connection is made, so a name that resolves to something else the second time
// gains nothing.
func (e Egress) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading an address: %w", err)
	}
	if !e.permits(at.Addr()) {
		return errAddressRefused
	}
	return nil
}

// maxRead is how much one connection may answer, TLS records and certificates
// included. Mail servers answer in lines that net/textproto reads whole.
const maxRead = 256 << 10

var errTooMuch = errors.New("the answer is too long")

// dial connects to what egress permits, and bounds what is read. Afterwards ctx
// means nothing to the connection: http.Transport ends it before the request.
func (e Egress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: e.control}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &boundedConn{Conn: conn, left: maxRead}, nil
}

// boundedConn reads no more than it should.
type boundedConn struct {
	net.Conn
	left int
}

// Read is called by one goroutine at a time, as both users of it do.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
