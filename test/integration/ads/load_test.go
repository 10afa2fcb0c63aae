// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
)

// load is what clients send to a proxy at a constant rate, whether or not answers
// come: requests with a body, and gRPC streams and WebSockets that live for a while.
// Nothing is tried again: bodies cannot be read twice, so that not even the client's
// connections do it.
type load struct {
	client  *http.Client
	callers []grpc_testing.TestServiceClient
	address string
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu       sync.Mutex
	requests int
	by       map[string]int // answers by backend
	failures []string
}

// perSecond is the rate of requests; every so many there are a gRPC stream and a WebSocket as well.
const perSecond, perStream = 300, 10

// startLoad begins; it ends when ended is called.
func startLoad(t testing.TB, address string) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: patience},
		address: address, stop: stop, by: map[string]int{},
		callers: []grpc_testing.TestServiceClient{caller(t, address), caller(t, address)},
	}
	l.done.Go(func() { l.run(ctx) })
	return l
}

func (l *load) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			// It outlives the load: whoever stops it wants to know how it ended.
			l.done.Go(func() { l.request(context.WithoutCancel(ctx), i) })
			if i%perStream == 0 {
				l.done.Go(func() { l.converse(context.WithoutCancel(ctx), l.callers[i/perStream%len(l.callers)]) })
				l.done.Go(func() { l.chat(context.WithoutCancel(ctx)) })
			}
		case <-ctx.Done():
			return
		}
	}
}

// once is a body that can be read once.
type once struct{ io.Reader }

func (l *load) request(ctx context.Context, i int) {
	text := fmt.Sprint("body-", i)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.address+"/", once{strings.NewReader(text)})
	if err != nil {
		l.count("", err.Error())
		return
	}
	response, err := l.client.Do(request)
	if err != nil {
		l.count("", err.Error())
		return
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read
	name, rest, _ := strings.Cut(string(body), " ")
	if err != nil || response.StatusCode != http.StatusOK || rest != text {
		l.count("", fmt.Sprintf("%d %q %v", response.StatusCode, body, err))
		return
	}
	l.count(name, "")
}

// converse for a while over a stream, whose trailers say how it ended and who it was.
func (l *load) converse(ctx context.Context, c grpc_testing.TestServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, want := fullDuplexSlowly(ctx, c), []string{"0", "1", "2", "3"}
	if said.Code != codes.OK || !slices.Equal(said.Bodies, want) || len(said.Trailer["backend"]) != 1 {
		l.count("", fmt.Sprintf("a stream: %+v", said))
		return
	}
	l.count("stream "+said.Trailer["backend"][0], "")
}

func (l *load) count(backend, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if failure != "" {
		l.failures = append(l.failures, failure)
		return
	}
	l.by[backend]++
}

// seen is how often a backend has answered.
func (l *load) seen(backend string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[backend]
}

// ended stops the load, and fails the test when a request has failed.
func (l *load) ended(t testing.TB) {
	t.Helper()
	l.stop()
	l.done.Wait()
	l.client.CloseIdleConnections()
	t.Logf("%d requests, %v, %d failed", l.requests, l.by, len(l.failures))
	if n := len(l.failures); n > 0 {
		t.Errorf("%d of %d requests failed, the first: %s", n, l.requests, l.failures[0])
	}
	if l.requests == 0 {
		t.Error("there was no load")
	}
}

// talk is a conversation over one connection that goes on as long as the test: it
// says a line, and hears it again.
type talk struct {
	say  io.Writer
	hear *bufio.Reader
	said int
}

// line says another one and hears it.
func (c *talk) line() error {
	c.said++
	line := fmt.Sprintf("line %d\n", c.said)
	if _, err := io.WriteString(c.say, line); err != nil {
		return fmt.Errorf("saying %q: %w", line, err)
	}
	heard, err := c.hear.ReadString('\n')
	if err == nil && heard != line {
		err = fmt.Errorf("heard %q", heard)
	}
	if err != nil {
		return fmt.Errorf("hearing %q: %w", line, err)
	}
	return nil
}

// goesOn says another line.
func (c *talk) goesOn(t testing.TB, what string) {
	t.Helper()
	if err := c.line(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// stream is an HTTP/2 stream through the proxy, both directions of which stay open.
func stream(t testing.TB, address string) *talk {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/echo", reader)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %v %+v", err, response)
	}
	t.Cleanup(func() { _ = writer.Close(); _ = response.Body.Close(); client.CloseIdleConnections() })
	return &talk{say: writer, hear: bufio.NewReader(response.Body)}
}
