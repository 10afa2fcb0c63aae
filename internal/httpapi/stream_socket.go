// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Subprotocol is that of the WebSockets. A browser that sends its token as a subprotocol has to offer another one, and to get it.
const Subprotocol = "v1.events.plumbline.dev"

// socket sends events as messages of a WebSocket.
type socket struct{ *websocket.Conn }

// serveSocket sends events until the caller has enough.
func (s *streams) serveSocket(w http.ResponseWriter, r *http.Request, l *listening) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
	if err != nil {
		return // it has answered
	}
	ctx, cancel := context.WithCancel(r.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer func() { _ = conn.CloseNow() }() // it may be closed
	reading.Go(func() {
		defer cancel()
		refuseMessages(ctx, conn)
	})
	s.tell(ctx, l, &socket{conn})
}

// refuseMessages answers pings and closing until the connection ends, which it does with the first message.
// CloseRead of the library would do the same, and wait for itself.
func refuseMessages(ctx context.Context, conn *websocket.Conn) {
	if _, _, err := conn.Reader(ctx); err == nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "a stream of events takes no messages") // the caller may be gone
	}
}

func (s *socket) begin() error { return nil }

// end closes the connection with the code and the reason of the last event.
func (s *socket) end(last *wire.Event) {
	_ = s.Close(websocket.StatusCode(last.Code), last.Message) // the caller may be gone
}

// send writes each event at once: the library has no write of several messages.
func (s *socket) send(ctx context.Context, news []events.Frame) error {
	for i := range news {
		if err := s.writeMessage(ctx, news[i].Body); err != nil {
			return err
		}
	}
	return nil
}

func (s *socket) writeMessage(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := s.Write(ctx, websocket.MessageText, body); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}

func (s *socket) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		return fmt.Errorf("sending a ping: %w", err)
	}
	return nil
}
