// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/sendonce"
)

// load is clients that ask all the time, and send nothing twice.
type load struct {
	t *testing.T
	// address of a proxy, and the host that is asked for; empty for the address.
	address, host string

	// upgrades is held while a WebSocket is opened.
	upgrades sync.Mutex

	mu sync.Mutex
	// by is how many answers came from whom, since the last look; slowest is how long the
	// slowest answer of all took.
	by      map[string]int
	failed  []string
	slowest time.Duration
	// attempts are the most that an answer took, if the proxy tells.
	attempts int
}

// body of requests that have one.
var body = strings.Repeat("0123456789abcdef", 4096)

// startLoad asks an address until the test ends: over HTTP/1.1 and HTTP/2, with bodies and without,
// and by calls of gRPC and WebSockets.
func startLoad(t *testing.T, address, host string) *load {
	t.Helper()
	l := &load{t: t, address: address, host: host, by: map[string]int{}}
	var clients sync.WaitGroup
	done := make(chan struct{})
	for _, ask := range l.clients() {
		clients.Go(func() {
			ticks := time.NewTicker(20 * time.Millisecond)
			defer ticks.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticks.C:
					ask()
				}
			}
		})
	}
	t.Cleanup(func() { close(done); clients.Wait() })
	return l
}

// clients send one request at each call.
func (l *load) clients() (all []func()) {
	for i := range 8 {
		c := client(l.t, i%2 == 1)
		method, content := http.MethodGet, ""
		if i >= 4 {
			method, content = http.MethodPost, body
		}
		all = append(all, func() { l.ask(c, method, content) })
	}
	calls := client(l.t, true)
	return append(all, func() { l.call(calls) }, l.upgrade)
}

func (l *load) ask(c *http.Client, method, content string) {
	l.send(c, method, content, "")
}

// send a request of a type of content, and note who has answered it.
func (l *load) send(c *http.Client, method, content, kind string) {
	req, err := sendonce.NewRequest(l.t.Context(), method, "http://"+l.address+"/", content)
	if err != nil {
		l.note("", err.Error(), 0)
		return
	}
	req.Host = l.host
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	begin := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		l.note("", err.Error(), time.Since(begin))
		return
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // read to its end
	attempts, _ := strconv.Atoi(resp.Header.Get("X-Envoy-Attempt-Count"))
	l.mu.Lock()
	l.attempts = max(l.attempts, attempts)
	l.mu.Unlock()
	switch {
	case err != nil:
		l.note("", err.Error(), time.Since(begin))
	case resp.StatusCode != http.StatusOK, kind == grpcType && resp.Trailer.Get("Grpc-Status") != "0":
		l.note("", fmt.Sprint(method, " ", resp.Proto, " ", resp.StatusCode, " ", string(text), resp.Header, resp.Trailer), time.Since(begin))
	default:
		l.note(resp.Header.Get("Variation"), "", time.Since(begin))
	}
}

func (l *load) note(by, failure string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	if failure != "" {
		l.failed = append(l.failed, failure)
		return
	}
	l.by[by]++
}

// look waits for so many answers from now on, and returns by whom they were.
func (l *load) look(answers int) map[string]int {
	l.t.Helper()
	l.forget()
	poll.Until(l.t, patience, fmt.Sprintf("%d answers", answers), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		n := len(l.failed)
		for _, by := range l.by {
			n += by
		}
		if n < answers {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	return l.forget()
}

func (l *load) forget() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	by := l.by
	l.by = map[string]int{}
	return by
}

// noneFailed fails the test for each request that failed since the last call.
func (l *load) noneFailed(when string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		l.t.Errorf("%s: %d requests failed, the first with %q", when, len(l.failed), l.failed[0])
	}
	l.failed = nil
}
