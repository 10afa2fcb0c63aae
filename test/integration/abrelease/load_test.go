// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/sendonce"
)

// startUpstream is an application that speaks HTTP/1.1, HTTP/2 and WebSockets.
func startUpstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.Copy(w, r.Body) // the client compares
			return
		}
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, buffered) // until the client ends
		_ = c.Close()               // the other side has
	}))
	l, err := net.Listen("tcp", net.JoinHostPort(backend.Own(t), "0")) //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().String()
}

// load is an open loop: a request begins every ten milliseconds at each client, whether or not the
// one before has its answer. Connections are kept, and nothing is sent twice.
type load struct {
	t *testing.T
	// proxy takes connections, and service is the destination that they name; without one they
	// are the application's.
	proxy, service string
	// end begins no more requests, and waits until each has its answer.
	end func()

	mu     sync.Mutex
	good   int
	failed []string
}

const (
	every = 10 * time.Millisecond
	// protocols of a load, each with a connection at least.
	protocols = 3
)

// startLoad begins with connections of its own, and lasts until the test ends.
func startLoad(t *testing.T, proxy, service string) *load {
	t.Helper()
	l := &load{t: t, proxy: proxy, service: service}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{DialContext: l.dial, Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 100}
		transport.Protocols.SetHTTP1(!http2)
		transport.Protocols.SetUnencryptedHTTP2(http2)
		running.Go(func() { l.repeat(ctx, transport) })
	}
	running.Go(func() { l.webSocket(ctx) })
	l.end = func() { stop(); running.Wait() }
	t.Cleanup(l.end)
	return l
}

func (l *load) repeat(ctx context.Context, transport *http.Transport) {
	c := &http.Client{Transport: transport, Timeout: patience}
	defer transport.CloseIdleConnections()
	var asking sync.WaitGroup
	defer asking.Wait() // each has its answer
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for ctx.Err() == nil {
		asking.Go(func() { l.note(l.ask(context.WithoutCancel(ctx), c)) })
		<-ticks.C
	}
}

// dial names the service as destination, if there is one.
func (l *load) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if l.service == "" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.proxy)
	}
	return envoy.DialCaptured(ctx, l.proxy, l.service)
}

func (l *load) ask(ctx context.Context, c *http.Client) error {
	const text = "what is sent comes back"
	request, err := sendonce.NewRequest(ctx, http.MethodPost, "http://web/", text)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && (response.StatusCode != http.StatusOK || string(body) != text) {
		err = fmt.Errorf("%s %s %q", response.Proto, response.Status, body)
	}
	return err
}

// kept is a connection that is idle between two requests.
type kept struct {
	load   *load
	client *http.Client
	opened atomic.Int64
}

// keepConnection opens a connection as those of a load, and asks over it.
func keepConnection(t *testing.T, l *load) *kept {
	t.Helper()
	k := &kept{load: l}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		k.opened.Add(1)
		return l.dial(ctx, network, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	k.client = &http.Client{Transport: transport, Timeout: patience}
	k.answers()
	return k
}

// answers fails the test unless the next request over the connection is answered.
func (k *kept) answers() {
	k.load.t.Helper()
	if err := k.load.ask(k.load.t.Context(), k.client); err != nil {
		k.load.t.Errorf("a request on a connection that was idle: %v", err)
	}
	if n := k.opened.Load(); n != 1 {
		k.load.t.Errorf("%d connections were opened, want one", n)
	}
}

// webSocket sends one word after the other, and waits for each to come back.
func (l *load) webSocket(ctx context.Context) {
	c, err := l.dial(ctx, "", "")
	if err != nil {
		l.note(fmt.Errorf("WebSocket: %w", err))
		return
	}
	defer func() { _ = c.Close() }() // the test is over
	lines := bufio.NewReader(c)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	for line := ""; err == nil && line != "\r\n"; {
		line, err = lines.ReadString('\n')
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		<-ticks.C
		err = exchange(c, lines, fmt.Sprintln("word", i))
	}
	if err != nil {
		l.note(fmt.Errorf("WebSocket: %w", err))
	}
}

// exchange sends a word, and waits for it to come back.
func exchange(c net.Conn, lines *bufio.Reader, word string) error {
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	back, err := lines.ReadString('\n')
	if err == nil && back != word {
		err = fmt.Errorf("%q comes back for %q", back, word)
	}
	return err
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err.Error())
		return
	}
	l.good++
}

// answered waits for so many more answers.
func (l *load) answered(more int) {
	l.t.Helper()
	l.mu.Lock()
	from := l.good + len(l.failed)
	l.mu.Unlock()
	poll.Until(l.t, patience, fmt.Sprintf("%d answers", more), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := l.good + len(l.failed) - from; n < more {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// noneFailed fails the test if a request has failed.
func (l *load) noneFailed() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		l.t.Errorf("%d of %d requests failed, the first with %q", len(l.failed), l.good+len(l.failed), l.failed[0])
	}
	l.t.Logf("%d requests", l.good)
}
