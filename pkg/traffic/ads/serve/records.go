// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/binary"
	"net"
)

// Records has a connection read one TLS record at a time, for TLS
// above it. What crypto/tls has read ahead it keeps in a buffer that grows and never
// shrinks: the first message of an Envoy, which says who it is in 61 KB, leaves 40 KiB
// of it on each connection for as long as that lives. Without anything ahead it is 18,
// enough for one record. No byte is changed; a reader may always get fewer than it
// asked for.
func Records(c net.Conn) net.Conn { return &recordConn{Conn: c} }

// recordConn knows where records end (RFC 8446, 5.1): each has a header whose last two
// bytes are the length of what follows.
type recordConn struct {
	net.Conn
	header [5]byte
	read   int // of the header
	left   int // of what follows it
}

// Read implements io.Reader; it gives nothing of two records at once.
func (c *recordConn) Read(p []byte) (int, error) {
	if c.left > 0 {
		n, err := c.Conn.Read(p[:min(len(p), c.left)])
		c.left -= n
		return n, err
	}
	n, err := c.Conn.Read(p[:min(len(p), len(c.header)-c.read)])
	c.read += copy(c.header[c.read:], p[:n])
	if c.read == len(c.header) {
		c.read, c.left = 0, int(binary.BigEndian.Uint16(c.header[3:]))
	}
	return n, err
}
