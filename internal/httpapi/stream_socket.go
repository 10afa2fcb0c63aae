// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/coder/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The codes with which a WebSocket ends beside those of RFC 6455.
const (
	// closeUnauthenticated says that the API server does not know the caller any more.
	closeUnauthenticated websocket.StatusCode = 4401
	// closeForbidden says that the caller may watch no kind any more.
	closeForbidden websocket.StatusCode = 4403
)

// socket sends events as messages of a WebSocket.
type socket struct{ *websocket.Conn }

// serveSocket sends events until the caller has enough.
func (s *streams) serveSocket(w http.ResponseWriter, r *http.Request, f *feed, in *subscription) {
	conn, err := websocket.Accept(w, r, nil)
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
	err = s.pump(ctx, f, in, &socket{conn})
	if !isOver(err) {
		s.log.Info("a stream of events has ended", "error", err)
	}
	if code, why := closeCode(err); code != 0 {
		_ = conn.Close(code, why) // the caller may be gone
	}
}

// refuseMessages answers pings and closing until the connection ends, which it does with the first message.
// CloseRead of the library would do the same, and wait for itself.
func refuseMessages(ctx context.Context, conn *websocket.Conn) {
	if _, _, err := conn.Reader(ctx); err == nil {
		_ = conn.Close(websocket.StatusPolicyViolation, "a stream of events takes no messages") // the caller may be gone
	}
}

// closeCode is 0 for a connection that takes no more.
func closeCode(err error) (code websocket.StatusCode, why string) {
	switch {
	case errors.Is(err, errEnded):
		return websocket.StatusGoingAway, "the server ends"
	case apierrors.IsUnauthorized(err):
		return closeUnauthenticated, "the API server does not know the caller"
	case apierrors.IsForbidden(err), kindIsMissing(err):
		return closeForbidden, "you may watch none of the kinds"
	}
	return 0, ""
}

func (s *socket) send(ctx context.Context, body []byte, _ string) error {
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
