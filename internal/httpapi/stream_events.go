// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// eventSource sends server-sent events.
type eventSource struct {
	http.ResponseWriter
	control *http.ResponseController
}

// serveEvents sends events until the caller has enough. It returns an error while the answer has not begun.
func (s *streams) serveEvents(w http.ResponseWriter, r *http.Request, f *feed, in *subscription) error {
	to := &eventSource{w, http.NewResponseController(w)}
	// The bounds of the server are for requests that end.
	if err := to.control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("opening a stream: %w", err)
	}
	w.Header().Set("Content-Type", eventType)
	w.WriteHeader(http.StatusOK)
	if err := to.write(": plumbline\n\n"); err != nil {
		return nil //nolint:nilerr // the caller is gone
	}
	if err := s.pump(r.Context(), f, in, to); !isOver(err) {
		s.log.Info("a stream of events has ended", "error", err)
	}
	return nil
}

func (e *eventSource) send(_ context.Context, body []byte, id string) error {
	text := "data: " + string(body) + "\n\n"
	if id != "" {
		text = "id: " + id + "\n" + text
	}
	return e.write(text)
}

func (e *eventSource) ping(context.Context) error { return e.write(": ping\n\n") }

func (e *eventSource) write(text string) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return fmt.Errorf("bounding a write: %w", err)
	}
	if _, err := e.Write([]byte(text)); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}
