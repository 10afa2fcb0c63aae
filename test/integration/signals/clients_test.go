// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// client asks as one user after the other.
type client struct {
	t     *testing.T
	http1 *http.Client
	http2 *http.Client
}

func newClient(t *testing.T) *client {
	of := func(second bool) *http.Client {
		transport := &http.Transport{Protocols: &http.Protocols{}}
		transport.Protocols.SetHTTP1(!second)
		transport.Protocols.SetUnencryptedHTTP2(second)
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: patience}
	}
	return &client{t, of(false), of(true)}
}

// request is one of a kind.
type request struct {
	path string
	// host that is asked for; empty for the address.
	host string
	// grpc has it be a call of gRPC, and second one over HTTP/2.
	grpc, second bool
	// patience is how long the client waits; it gives up then.
	patience time.Duration
}

// ask and read all of the answer. The variation is that of the upstream, and the status
// is 0, when there was none.
func (c *client) ask(address, user string, r request) (status int, variation string) {
	ctx := c.t.Context()
	if r.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.patience)
		defer cancel()
	}
	method, by := http.MethodGet, c.http1
	if r.grpc || r.second {
		method, by = http.MethodPost, c.http2
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+r.path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	req.Host = r.host
	req.Header.Set("X-User", user)
	if r.grpc {
		req.Header.Set("Content-Type", grpcType)
		req.Header.Set("Te", "trailers")
	}
	response, err := by.Do(req)
	if err != nil {
		return 0, ""
	}
	_, _ = io.Copy(io.Discard, response.Body) // an end that is none is what is asked for
	_ = response.Body.Close()                 // likewise
	return response.StatusCode, response.Header.Get("Variation")
}

// upgrade opens a WebSocket and waits for the answer.
func (c *client) upgrade(address, user string) net.Conn {
	c.t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	must(c.t, err)
	must(c.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\nX-User: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", pathWebSocket, user)
	must(c.t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	must(c.t, err)
	if line != "HTTP/1.1 101 Switching Protocols\r\n" {
		c.t.Fatalf("the answer is %q", line)
	}
	return conn
}
