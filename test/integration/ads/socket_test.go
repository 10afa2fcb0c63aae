// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

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

// upgrade opens a WebSocket through the proxy, and says which backend took it.
func upgrade(ctx context.Context, address string) (conn net.Conn, hear *bufio.Reader, by string, err error) {
	var dialer net.Dialer
	if conn, err = dialer.DialContext(ctx, "tcp", address); err != nil {
		return nil, nil, "", fmt.Errorf("connecting: %w", err)
	}
	hear = bufio.NewReader(conn)
	if by, err = takenUp(conn, hear); err != nil {
		_ = conn.Close() // nothing else is said on it
		return nil, nil, "", fmt.Errorf("upgrading: %w", err)
	}
	return conn, hear, by, nil
}

func takenUp(conn net.Conn, hear *bufio.Reader) (by string, err error) {
	const request = "GET /socket HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(hear, nil) //nolint:bodyclose // it is the connection
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return "", fmt.Errorf("the status is %d", response.StatusCode)
	}
	return response.Header.Get("Backend"), nil
}

// socket is a WebSocket through the proxy that stays open.
func socket(t testing.TB, address string) *talk {
	t.Helper()
	conn, hear, _, err := upgrade(t.Context(), address)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &talk{say: conn, hear: hear}
}

// chat opens a WebSocket, says three lines slowly enough to see some changes, and closes it.
func (l *load) chat(ctx context.Context) {
	conn, hear, by, err := upgrade(ctx, l.address)
	if err != nil {
		l.count("", fmt.Sprint("a WebSocket: ", err))
		return
	}
	defer func() { _ = conn.Close() }() // all was heard, or the failure is counted
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	c := &talk{say: conn, hear: hear}
	for range 3 {
		<-tick.C
		if err := c.line(); err != nil {
			l.count("", fmt.Sprintf("a WebSocket to %s: %v", by, err))
			return
		}
	}
	l.count("socket "+by, "")
}
