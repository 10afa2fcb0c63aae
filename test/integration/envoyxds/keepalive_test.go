// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// impatient is an upstream that ends each connection which has had no request for a time.
func impatient(t *testing.T, keepAlive time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &http.Server{IdleTimeout: keepAlive, ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// askEach has each of many clients ask on a connection of its own, again and again, with a
// pause that differs from the given one by 10 ms at most. It returns the answers by status.
func askEach(t *testing.T, address string, pause time.Duration, rounds int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	answers := map[string]int{}
	const many = 100
	for i := range many {
		c, method, content := client(t, false), http.MethodGet, ""
		if i%2 == 1 {
			method, content = http.MethodPost, "body"
		}
		clients.Go(func() {
			ticks := time.NewTicker(pause - 10*time.Millisecond + 20*time.Millisecond*time.Duration(i)/many)
			defer ticks.Stop()
			for range rounds {
				answer := post(t, c, method, address, content)
				mu.Lock()
				answers[answer]++
				mu.Unlock()
				<-ticks.C
			}
		})
	}
	clients.Wait()
	return answers
}

func post(t *testing.T, c *http.Client, method, address, content string) string {
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/", strings.NewReader(content))
	if err != nil {
		return err.Error()
	}
	resp, err := c.Do(req)
	if err != nil {
		return method + " " + err.Error()
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return method + " " + strconv.Itoa(resp.StatusCode) + " " + string(text)
}

// M2: a server ends a connection in the moment in which the proxy sends a request on it. The
// proxy ends the connection before, by its default or by what the Service says.
func TestAServerWithAShortKeepAliveFailsNoRequest(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		tests := map[string]struct {
			keepAlive time.Duration
			settings  ir.Settings
		}{
			"two seconds, which gunicorn has":     {2 * time.Second, ir.Settings{}},
			"one second, and the Service says so": {time.Second, ir.Settings{IdleTimeout: 500 * time.Millisecond}},
		}
		var services []ir.Service
		names := slices.Sorted(maps.Keys(tests))
		for _, name := range names {
			s := web(nil, slot("", endpoint(impatient(t, tests[name].keepAlive), ir.Ready)))
			s.Settings = tests[name].settings
			services = append(services, s)
		}
		addresses := serve(t, services...)
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				got := askEach(t, addresses[i], tests[name].keepAlive, int(4*time.Second/tests[name].keepAlive))
				delete(got, "GET 200 ")
				delete(got, "POST 200 ")
				if len(got) > 0 {
					t.Errorf("%s: these requests failed: %v", name, got)
				}
			})
		}
		all.Wait()
	})
}
