// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Frame is an event as streams send it. Streams share the bytes, so no stream changes them.
type Frame struct {
	Type wire.EventType
	// Text is the event as a server-sent event.
	Text []byte
	// Body is the JSON of the event, a part of Text. A WebSocket sends it as a message.
	Body []byte
}

// NewFrame encodes an event. An event with a time that JSON cannot have becomes a notice that events may be missing.
func NewFrame(e *wire.Event) Frame {
	body, err := json.Marshal(e)
	if err != nil {
		return NewFrame(&wire.Event{Type: wire.EventResync, Namespace: e.Namespace, Status: "not_encoded", Message: wire.EventsMayBeMissing})
	}
	text := make([]byte, 0, len("id: \ndata: \n\n")+len(e.ID)+len(body))
	if e.ID != "" {
		text = append(append(append(text, "id: "...), e.ID...), '\n')
	}
	text = append(text, "data: "...)
	begin := len(text)
	text = append(text, body...)
	end := len(text)
	text = append(text, "\n\n"...)
	return Frame{Type: e.Type, Text: text, Body: text[begin:end:end]}
}

// Message is an event that a ring keeps. The kind and the namespace tell which callers may hear the event.
type Message struct {
	ID              ID
	Kind, Namespace string
	Frame
}

func newMessage(e *Entry) Message {
	return Message{ID: e.ID, Kind: e.Kind, Namespace: e.Event.Namespace, Frame: NewFrame(&e.Event)}
}
