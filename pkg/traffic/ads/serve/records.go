// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/binary"
	"net"
	"sync"
)

// Records has a connection read one TLS record at a time, for TLS
// above it. What crypto/tls has read ahead it keeps in a buffer that grows and never
// shrinks: the first message of an Envoy, which says who it is in 61 KB, leaves 40 KiB
// of it on each connection for as long as that lives. Without anything ahead it is 18,
// enough for one record. No byte is changed; a reader may always get fewer than it
// asked for.
func Records(c net.Conn) net.Conn { return &recordConn{Conn: c} }

// ahead is how much is read with the header of a record: most of what proxies send are
// acknowledgments, and counts of a few variations, which then take one call of the kernel and not two.
const ahead = 4 << 10

// aheads are the buffers of connections that have read something which is not given yet. That is so
// only between two reads, and not while a proxy is waited for.
var aheads = sync.Pool{New: func() any { return new([ahead]byte) }}

// recordConn knows where records end (RFC 8446, 5.1): each has a header whose last two
// bytes are the length of what follows.
type recordConn struct {
	net.Conn
	header [5]byte
	read   int // of the header
	left   int // of what follows it
	// early was read and not given yet; it lies in buffer, which is nil without it.
	early  []byte
	buffer *[ahead]byte
}

// Read implements io.Reader; it gives nothing of two records at once.
func (c *recordConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.left > 0 {
		n, err := c.some(p[:min(len(p), c.left)])
		c.left -= n
		return n, err
	}
	n, err := c.begin(p)
	c.read += copy(c.header[c.read:], p[:n])
	if c.read == len(c.header) {
		c.read, c.left = 0, int(binary.BigEndian.Uint16(c.header[3:]))
	}
	return n, err
}

// some of what was read early, or of the connection.
func (c *recordConn) some(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		aheads.Put(c.buffer)
		c.early, c.buffer = nil, nil
	}
	return n, nil
}

// begin reads what is missing of a header, and keeps what comes with it.
func (c *recordConn) begin(p []byte) (int, error) {
	missing := len(c.header) - c.read
	if len(c.early) > 0 || len(p) <= missing {
		return c.some(p[:min(len(p), missing)])
	}
	n, err := c.Conn.Read(p[:min(len(p), ahead)])
	if n <= missing {
		return n, err
	}
	c.buffer, _ = aheads.Get().(*[ahead]byte) // it has nothing else
	c.early = c.buffer[:copy(c.buffer[:], p[missing:n])]
	return missing, nil // an error comes again
}
