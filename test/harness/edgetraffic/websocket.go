// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
)

// StartEcho starts an upstream of WebSockets that sends each message back. The result is host:port.
func StartEcho(tb testing.TB) string {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client sees it
		}
		defer func() { _ = conn.CloseNow() }() // the client is gone
		for {
			kind, text, err := conn.Read(r.Context())
			if err != nil || conn.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	tb.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// WebSocket is a connection that is open until the test ends.
type WebSocket struct {
	tb   testing.TB
	conn *websocket.Conn
}

// OpenWebSocket connects to an address, behind which is an echo.
func OpenWebSocket(tb testing.TB, address string) *WebSocket {
	tb.Helper()
	conn, _, err := websocket.Dial(tb.Context(), "ws://"+address+"/", nil) //nolint:bodyclose // the library says that it needs no end
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.CloseNow() }) // the test is over
	return &WebSocket{tb, conn}
}

// EchoText sends a message, and fails the test unless the message comes back.
func (w *WebSocket) EchoText(text string) {
	w.tb.Helper()
	if err := w.conn.Write(w.tb.Context(), websocket.MessageText, []byte(text)); err != nil {
		w.tb.Fatal(err)
	}
	if _, got, err := w.conn.Read(w.tb.Context()); err != nil || string(got) != text {
		w.tb.Fatalf("%q comes back as %q (%v)", text, got, err)
	}
}
