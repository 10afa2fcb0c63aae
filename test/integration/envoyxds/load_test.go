// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// load is clients that ask all the time, and send nothing twice.
type load struct {
	t  *testing.T
	mu sync.Mutex
	// by is how many answers came from whom, since the last look; slowest is how long the
	// slowest answer of all took.
	by      map[string]int
	failed  []string
	slowest time.Duration
}

// body of requests that have one.
var body = strings.Repeat("0123456789abcdef", 4096)

// startLoad asks an address over HTTP/1.1 and HTTP/2, with bodies and without, until the test ends.
func startLoad(t *testing.T, address string) *load {
	t.Helper()
	l := &load{t: t, by: map[string]int{}}
	var clients sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		c := client(t, i%2 == 1)
		method, content := http.MethodGet, ""
		if i >= 4 {
			method, content = http.MethodPost, body
		}
		clients.Go(func() {
			ticks := time.NewTicker(20 * time.Millisecond)
			defer ticks.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticks.C:
					l.ask(c, method, address, content)
				}
			}
		})
	}
	t.Cleanup(func() { close(done); clients.Wait() })
	return l
}

func (l *load) ask(c *http.Client, method, address, content string) {
	// A reader without a name for its size: the transport cannot send it a second time.
	req, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+address+"/", io.MultiReader(strings.NewReader(content)))
	if err != nil {
		l.note("", err.Error(), 0)
		return
	}
	begin := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		l.note("", err.Error(), time.Since(begin))
		return
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // read to its end
	switch {
	case err != nil:
		l.note("", err.Error(), time.Since(begin))
	case resp.StatusCode != http.StatusOK:
		l.note("", fmt.Sprint(method, " ", resp.Proto, " ", resp.StatusCode, " ", string(text)), time.Since(begin))
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
