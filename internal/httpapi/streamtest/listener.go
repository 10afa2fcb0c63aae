// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Sorts are those of streams.
var Sorts = []string{"WebSocket", "server-sent events"}

// Listener reads a stream as fast as it tells.
type Listener struct {
	heard chan said
	// Pings has the time of each sign of life of server-sent events.
	Pings chan time.Time
	// Begins has the id with which server-sent events begin.
	Begins chan string
	Leave  func()
}

// said is an event, or the end of a stream.
type said struct {
	event wire.Event
	err   error
}

// silence bounds, on the clock of the test, how long a listener waits for an event.
const silence = 75 * time.Second

// ErrSilent says that no event came.
var ErrSilent = errors.New("no event came")

// Next returns the next event, and an error at the end of the stream.
func (l *Listener) Next() (wire.Event, error) {
	select {
	case h := <-l.heard:
		return h.event, h.err
	case <-time.After(silence):
		return wire.Event{}, ErrSilent
	}
}

// Listen opens a stream of a sort, with headers that each have their value behind them. The listener tells each event from now on.
func Listen(t *testing.T, client *http.Client, sort, url string, headers ...string) *Listener {
	t.Helper()
	defer synctest.Wait()
	header := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	l := &Listener{heard: make(chan said, 1000), Pings: make(chan time.Time, 1000), Begins: make(chan string, 1)}
	if sort == "WebSocket" {
		conn := DialSocket(t, client, url, header)
		l.Leave = func() { _ = conn.CloseNow() } // the server may have closed it
		go l.readSocket(t.Context(), conn)
		return l
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request) //nolint:bodyclose // Leave closes it
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%d %s", response.StatusCode, got)
	}
	l.Leave = func() { _ = response.Body.Close() } // the server may have closed it
	go l.readEvents(response.Body)
	return l
}

// DialSocket opens a WebSocket.
func DialSocket(t *testing.T, client *http.Client, url string, header http.Header) *websocket.Conn {
	t.Helper()
	var protocols []string
	if offered := header.Get("Sec-WebSocket-Protocol"); offered != "" {
		protocols = strings.Split(offered, ", ")
		header.Del("Sec-WebSocket-Protocol")
	}
	conn, response, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http"), &websocket.DialOptions{HTTPClient: client, HTTPHeader: header, Subprotocols: protocols}) //nolint:bodyclose // the connection is the body
	if err != nil {
		t.Fatalf("%v: %+v", err, response)
	}
	return conn
}

func (l *Listener) readSocket(ctx context.Context, conn *websocket.Conn) {
	for {
		_, body, err := conn.Read(ctx)
		var e wire.Event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if l.heard <- (said{e, err}); err != nil {
			return
		}
	}
}

func (l *Listener) readEvents(body io.Reader) {
	lines := bufio.NewScanner(body)
	id := ""
	for lines.Scan() {
		if lines.Text() == ": ping" {
			l.Pings <- time.Now()
		}
		if given, found := strings.CutPrefix(lines.Text(), "id: "); found {
			id = given
		}
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			var e wire.Event
			err := json.Unmarshal([]byte(data), &e)
			if e.ID != id {
				err = errors.New("the event " + data + " has the id " + id)
			}
			l.heard <- said{e, err}
			id = ""
		}
		if lines.Text() == "" && id != "" {
			l.Begins <- id
			id = ""
		}
	}
	l.heard <- said{err: cmp.Or(lines.Err(), io.EOF)}
}
