// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

func TestAFrameHasTheEventForBothSortsOfStreams(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		event wire.Event
		want  string
	}{
		"an event of an object": {
			wire.Event{ID: "1.u.0", Type: wire.EventPlanCreated, Namespace: "shop", Status: "pending", Message: "a\nb", Timestamp: at},
			"id: 1.u.0\ndata: " + `{"id":"1.u.0","type":"plan.created","namespace":"shop","status":"pending","message":"a\nb","timestamp":"2026-03-01T12:00:00Z"}` + "\n\n",
		},
		"a notice has no id": {
			wire.Event{Type: wire.EventNarrowed, Status: "forbidden", Timestamp: at},
			`data: {"type":"narrowed","status":"forbidden","timestamp":"2026-03-01T12:00:00Z"}` + "\n\n",
		},
		"a time that JSON cannot have": {
			wire.Event{ID: "1.u.0", Type: wire.EventPlanCreated, Namespace: "shop", Timestamp: at.AddDate(9000, 0, 0)},
			`data: {"type":"resync","namespace":"shop","status":"not_encoded","message":"events may be missing: read the objects again","timestamp":"0001-01-01T00:00:00Z"}` + "\n\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := NewFrame(&tc.event)
			if diff := cmp.Diff(tc.want, string(f.Text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var read wire.Event
			if err := json.Unmarshal(f.Body, &read); err != nil || read.Type != f.Type || !strings.Contains(tc.want, string(f.Body)) {
				t.Errorf("the message %s of the type %s is read as %+v (%v)", f.Body, f.Type, read, err)
			}
			// An append to the message of one stream leaves the bytes of the others.
			_ = append(f.Body, 'x')
			if !strings.HasSuffix(string(f.Text), "}\n\n") {
				t.Errorf("an append has changed the text to %q", f.Text)
			}
		})
	}
}
