// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// consolePatience bounds the wait for the address that the console prints, and for one answer.
const consolePatience = 30 * time.Second

// desk is a console of the plugin that runs beside the story, and a client that has its key.
type desk struct {
	// address has the key.
	address string
	// api is the address without a path.
	api    string
	client *http.Client
	end    func() error
}

// openDesk starts a console that acts as a user, or as the admin of the story if the user is empty.
func openDesk(ctx context.Context, c *harness.Cluster, user string) (*desk, error) {
	args := []string{"kubectl", "plumbline", "console", "--no-browser"}
	if user != "" {
		args = append(args, "--as", user)
	}
	running, stop := context.WithCancel(ctx)
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(running, args, harness.WithStdout(out))
		out.CloseWithError(errors.Join(io.EOF, err))
		ended <- err
	}()
	d := &desk{end: func() error {
		stop()
		if err := <-ended; err != nil && ctx.Err() == nil && running.Err() == nil {
			return err
		}
		return nil
	}}
	late := time.AfterFunc(consolePatience, stop)
	line, err := bufio.NewReader(printed).ReadString('\n')
	late.Stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the address of the console: %w", err), d.end())
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }() // it ends with the command
	if err := d.enter(ctx, strings.TrimPrefix(strings.TrimSpace(line), "Serving on ")); err != nil {
		return nil, errors.Join(err, d.end())
	}
	return d, nil
}

// enter opens the address once, so that the client has the cookie.
func (d *desk) enter(ctx context.Context, address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("reading the address of the console: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return fmt.Errorf("making a cookie jar: %w", err)
	}
	d.address, d.api, d.client = address, "http://"+at.Host, &http.Client{Jar: jar, Timeout: consolePatience}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.api+"/api/v1/whoami?"+at.RawQuery, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking the console who the caller is: %w", err)
	}
	_, _, err = d.answer(request)
	return err
}

// send sends a request with a JSON body, and returns the status and the body of the answer.
func (d *desk) send(ctx context.Context, method, path, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, d.api+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("making the request %s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	return d.answer(request)
}

func (d *desk) answer(request *http.Request) (status int, body []byte, err error) {
	response, err := d.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the console: %w", err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, fmt.Errorf("reading the answer of the console: %w", err)
	}
	return response.StatusCode, body, nil
}

// follow opens a WebSocket of the events of a namespace. The channel has each event, and ends with the connection.
func (d *desk) follow(ctx context.Context, namespace string) (<-chan wire.Event, func(), error) {
	at := "ws" + strings.TrimPrefix(d.api, "http") + "/api/v1/events?namespace=" + namespace
	conn, _, err := websocket.Dial(ctx, at, &websocket.DialOptions{HTTPClient: &http.Client{Jar: d.client.Jar}, HTTPHeader: http.Header{"Origin": {d.api}}}) //nolint:bodyclose // the connection is the body
	if err != nil {
		return nil, nil, fmt.Errorf("opening a WebSocket of events: %w", err)
	}
	events := make(chan wire.Event, 1000)
	go func() {
		defer close(events)
		for {
			_, body, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var e wire.Event
			if json.NewDecoder(bytes.NewReader(body)).Decode(&e) != nil {
				return
			}
			events <- e
		}
	}()
	return events, func() { _ = conn.CloseNow() }, nil // the console may have ended it
}
