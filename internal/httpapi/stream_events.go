// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
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
func (e *eventSource) begin() error {
	return e.writeTexts([]byte(": plumbline\nid: " + e.begun + "\n\n"))
}

func (e *eventSource) send(_ context.Context, news []events.Frame) error {
	texts := make([][]byte, 0, len(news))
	for i := range news {
		texts = append(texts, news[i].Text)
	}
	return e.writeTexts(texts...)
}

// end tells why the stream ends, by a last event: the protocol has no codes.
func (e *eventSource) end(last *wire.Event) {
	_ = e.writeTexts(events.NewFrame(last).Text) // the caller may be gone
}

func (e *eventSource) ping(context.Context) error { return e.writeTexts([]byte(": ping\n\n")) }

// writeTexts writes texts, and sends them at once.
func (e *eventSource) writeTexts(texts ...[]byte) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return fmt.Errorf("bounding a write: %w", err)
	}
	for _, text := range texts {
		if _, err := e.Write(text); err != nil {
			return fmt.Errorf("writing an event: %w", err)
		}
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}
