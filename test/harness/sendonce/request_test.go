// SPDX-License-Identifier: Apache-2.0

package sendonce

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// ending is a connection of a client that tells when its transport has given it up.
type ending struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

func (c *ending) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// dialer keeps the connections that it makes.
type dialer struct{ made []*ending }

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.made = append(d.made, &ending{Conn: c, ended: make(chan struct{})})
	return d.made[len(d.made)-1], nil
}

// start starts a server and a client of one protocol; read counts the requests that the server has read.
func start(t *testing.T, http2 bool) (url string, client *http.Client, d *dialer, read *atomic.Int64) {
	t.Helper()
	d, read = &dialer{}, &atomic.Int64{}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read.Add(1)
		if r.URL.Path == "/breaks" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(w, r.Body) // the client compares
	}))
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: protocols, DialContext: d.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return server.URL, &http.Client{Transport: transport}, d, read
}

// send sends a request, and returns the body of its answer.
func send(t *testing.T, client *http.Client, method, url string, trace *httptrace.ClientTrace) (string, error) {
	t.Helper()
	request, err := NewRequest(httptrace.WithClientTrace(t.Context(), trace), method, url, "text")
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

// A load counted a request as lost that its client had not begun to send: "cannot rewind body after connection loss".
// The proxy asked for another connection when the request had chosen the one of before.
func TestARequestThatWasNotSentIsNotLost(t *testing.T) {
	url, client, d, _ := start(t, true)
	if _, err := send(t, client, http.MethodPost, url, &httptrace.ClientTrace{}); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = d.made[0].Conn.Close() // as its peer would
		poll.Receive(t, time.Minute, "the transport gives the connection up", d.made[0].ended)
	})
	body, err := send(t, client, http.MethodPost, url, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { end() }})
	if err != nil || body != "text" || len(d.made) != 2 {
		t.Errorf("%q (%v) with %d connections, want the text with two", body, err, len(d.made))
	}
}

// A request that a server may have read is not sent again, as the transport does with a GET: the load has to see that loss.
func TestARequestThatWasSentIsNotRepeated(t *testing.T) {
	url, client, _, read := start(t, false)
	if _, err := send(t, client, http.MethodGet, url, &httptrace.ClientTrace{}); err != nil { // the next one finds a connection
		t.Fatal(err)
	}
	body, err := send(t, client, http.MethodGet, url+"/breaks", &httptrace.ClientTrace{})
	if !errors.Is(err, errSent) || read.Load() != 2 {
		t.Errorf("%q (%v), and the server has read %d requests, want %v and 2", body, err, read.Load(), errSent)
	}
}
