// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// eventSource sends server-sent events.
type eventSource struct {
	http.ResponseWriter
	control *http.ResponseController
	// begun is the id from which a caller goes on who has heard no event.
	begun string
}

// serveEvents sends events until the caller has enough. It returns an error while the answer has not begun.
func (s *streams) serveEvents(w http.ResponseWriter, r *http.Request, l *listening) error {
	to := &eventSource{w, http.NewResponseController(w), events.ID{Second: l.begun.Unix(), UID: "none", Place: "0"}.String()}
	// The bounds of the server are for requests that end.
	if err := to.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("opening a stream: %w", err)
	}
	w.Header().Set("Content-Type", eventType)
	w.WriteHeader(http.StatusOK)
	s.tell(r.Context(), l, to)
	return nil
}

// begin has the caller see at once that the stream is open. A browser notes the id, and has no event for it.
func (e *eventSource) begin() error { return e.tell(": plumbline\nid: " + e.begun + "\n\n") }

func (e *eventSource) send(_ context.Context, body []byte, id string) error {
	text := "data: " + string(body) + "\n\n"
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	return e.write(text)
}

// end tells why the stream ends, by a last event: the protocol has no codes.
func (e *eventSource) end(last *wire.Event) {
	if body, err := json.Marshal(last); err == nil {
		_ = e.tell("data: " + string(body) + "\n\n") // the caller may be gone
	}
}

func (e *eventSource) ping(context.Context) error { return e.tell(": ping\n\n") }

// tell writes a text, and sends it.
func (e *eventSource) tell(text string) error {
	if err := e.write(text); err != nil {
		return err
	}
	return e.flush()
}

func (e *eventSource) write(text string) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return fmt.Errorf("bounding a write: %w", err)
	}
	if _, err := io.WriteString(e.ResponseWriter, text); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}

func (e *eventSource) flush() error {
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}
