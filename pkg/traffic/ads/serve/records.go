// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/binary"
	"net"
)

// Records has the connections of a listener read one TLS record at a time, for TLS
// above it. What crypto/tls has read ahead it keeps in a buffer that grows and never
// shrinks: the first message of an Envoy, which says who it is in 61 KB, leaves 40 KiB
// of it on each connection for as long as that lives. Without anything ahead it is 18,
// enough for one record. No byte is changed; a reader may always get fewer than it
// asked for.
func Records(l net.Listener) net.Listener { return recordListener{l} }

type recordListener struct{ net.Listener }

// Accept implements net.Listener.
func (l recordListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recordConn{Conn: c}, nil
}

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
