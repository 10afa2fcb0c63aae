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

// NewClient makes a client whose requests all go to one target, for any host. The caller
// ends its requests with CloseIdleConnections.
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

// maxFailure is the number of bytes that are read of an error of the kubelet.
const maxFailure = 1 << 10

// conn is the stream of data as a connection.
type conn struct {
	connection httpstream.Connection
	data       httpstream.Stream
	// failed has the error of the kubelet once it is complete; nil without an error.
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

// Read returns the error of the kubelet in place of the end of the data: the
// kubelet sends its error before it ends the stream.
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

// Close ends both streams and their readers.
func (c *conn) Close() error { return c.connection.Close() }

// Deadlines are not kept: the contexts of requests bound them.

func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return forwarded{} }
func (c *conn) RemoteAddr() net.Addr { return forwarded{} }

// forwarded stands for the address that a forwarded connection lacks.
type forwarded struct{}

func (forwarded) Network() string { return "portforward" }
func (forwarded) String() string  { return "portforward" }
