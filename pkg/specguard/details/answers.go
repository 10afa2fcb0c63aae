// SPDX-License-Identifier: Apache-2.0

package details

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Bounds of an answer. The client library believes every length that it is told
// and makes room for it at once: one line of a server that lies would end the
// process. So answers are looked through before the library sees them.
const (
	// maxLine is the length of a status, an error, or a number.
	maxLine = 4 << 10
	// maxBulk is the size of one string: a record and room to spare.
	maxBulk = 1 << 20
	// maxElements is the length of one array: MaxRead and room to spare.
	maxElements = 2 * MaxRead
	// maxNesting is how deep arrays lie in each other; an entry in the answer to
	// XREAD lies five deep.
	maxNesting = 8
	// maxAnswer is the size of one answer.
	maxAnswer = 8 << 20
)

var (
	errMalformed = errors.New("an answer that is not of the Redis protocol, version 2")
	errTooLarge  = errors.New("an answer over the bound")
)

// answers follows the framing of what a server sends
// (https://redis.io/docs/latest/develop/reference/protocol-spec/, RESP2). The
// zero value is at the beginning of an answer.
type answers struct {
	line []byte // the header so far
	bulk int    // bytes of a string that are still to come, its line break included
	open []int  // elements still to come, of each array that is open
	size int    // of this answer so far
}

// take looks at bytes in the order in which they came. An error is for good.
func (a *answers) take(data []byte) error {
	for len(data) > 0 {
		n := a.piece(data)
		if a.size += n; a.size > maxAnswer {
			return fmt.Errorf("%w: more than %d bytes", errTooLarge, maxAnswer)
		}
		if a.bulk > 0 {
			if a.bulk -= n; a.bulk == 0 {
				a.done()
			}
		} else if err := a.header(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// piece is how much of the data is looked at next: the rest of a string, or up
// to the end of a line.
func (a *answers) piece(data []byte) int {
	if a.bulk > 0 {
		return min(a.bulk, len(data))
	}
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1
	}
	return len(data)
}

func (a *answers) header(part []byte) error {
	if len(a.line)+len(part) > maxLine {
		return fmt.Errorf("%w: a line of more than %d bytes", errTooLarge, maxLine)
	}
	a.line = append(a.line, part...)
	if a.line[len(a.line)-1] != '\n' {
		return nil
	}
	line := a.line
	a.line = a.line[:0]
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return fmt.Errorf("%w: %.40q", errMalformed, line)
	}
	return a.element(line[0], string(line[1:len(line)-2]))
}

func (a *answers) element(kind byte, rest string) error {
	switch kind {
	case '+', '-', ':':
		a.done()
		return nil
	case '$', '*':
	default: // version 3 is not what we asked for
		return fmt.Errorf("%w: it begins with %q", errMalformed, kind)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%w: a length of %.40q", errTooLarge, rest)
	case err != nil, n < -1:
		return fmt.Errorf("%w: a length of %.40q", errMalformed, rest)
	case n == -1, kind == '*' && n == 0:
		a.done()
	case kind == '$' && n > maxBulk, kind == '*' && n > maxElements, kind == '*' && len(a.open) == maxNesting:
		return fmt.Errorf("%w: %c%d, %d deep", errTooLarge, kind, n, len(a.open))
	case kind == '$':
		a.bulk = n + len("\r\n")
	default:
		a.open = append(a.open, n)
	}
	return nil
}

// done ends an element, and every array of which it was the last.
func (a *answers) done() {
	for len(a.open) > 0 {
		last := len(a.open) - 1
		if a.open[last]--; a.open[last] > 0 {
			return
		}
		a.open = a.open[:last]
	}
	a.size = 0
}

// boundedConn is a connection whose answers keep the bounds; one that does not
// ends the connection.
type boundedConn struct {
	net.Conn
	answers answers
	broken  error
}

// Read implements net.Conn.
func (c *boundedConn) Read(into []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	n, err := c.Conn.Read(into)
	if c.broken = c.answers.take(into[:n]); c.broken != nil {
		return 0, c.broken
	}
	return n, err
}

// boundedSocket is a boundedConn on a socket, which the library's pool may look
// at to see that the connection has ended, or speaks without being asked. One
// that speaks TLS is none: what waits in it may be TLS's own.
type boundedSocket struct {
	*boundedConn
	syscall.Conn
}

// dialFunc connects.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// bounded lets a way to connect have only answers that keep the bounds.
func bounded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err // a *net.OpError, by which the writer knows that nothing left
		}
		inner := &boundedConn{Conn: conn}
		if socket, ok := conn.(syscall.Conn); ok {
			return boundedSocket{inner, socket}, nil
		}
		return inner, nil
	}
}
