// SPDX-License-Identifier: Apache-2.0

package portforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
)

// NewClient makes a client whose requests all go to one target, whatever their host. Whoever
// has asked what there is to ask calls CloseIdleConnections.
func NewClient(config *rest.Config, target Target) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dial(ctx, config, target)
			if err != nil {
				return nil, fmt.Errorf("forwarding port %d of pod %s: %w", target.Port, target.Pod, err)
			}
			return c, nil
		},
	}}
}

// maxFailure is how many bytes are read of what the kubelet says went wrong.
const maxFailure = 1 << 10

// conn is the stream of data as a connection.
type conn struct {
	connection httpstream.Connection
	data       httpstream.Stream
	// failed has what the kubelet says went wrong, once it has said all; nil for nothing.
	failed chan error
}

func newConn(connection httpstream.Connection, data, failures httpstream.Stream, port int) *conn {
	c := &conn{connection: connection, data: data, failed: make(chan error, 1)}
	go func() {
		text, err := io.ReadAll(io.LimitReader(failures, maxFailure))
		switch {
		case err != nil:
			err = fmt.Errorf("reading the kubelet's message about port %d: %w", port, err)
		case len(text) > 0:
			err = errors.New(string(text))
		}
		c.failed <- err
	}()
	return c
}

// Read returns what the kubelet says went wrong where there would be no more data: the
// kubelet says it before it ends the stream.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	failed := <-c.failed
	c.failed <- failed
	if failed != nil {
		return n, failed
	}
	return n, io.EOF
}

func (c *conn) Write(p []byte) (int, error) { return c.data.Write(p) }

// Close ends both streams, and what reads them.
func (c *conn) Close() error { return c.connection.Close() }

// Deadlines are not kept: the contexts of requests bound them.

func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return forwarded{} }
func (c *conn) RemoteAddr() net.Addr { return forwarded{} }

// forwarded stands for an address, which there is none of.
type forwarded struct{}

func (forwarded) Network() string { return "portforward" }
func (forwarded) String() string  { return "portforward" }
