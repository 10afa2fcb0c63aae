// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// A server of HTTP/2 says that it has not seen a request. The proxy sends the request to
// endpoints that it has not asked, those of the variation first.
func TestARequestThatAServerRefusesGoesToAnotherEndpoint(t *testing.T) {
	tests := map[string]func(*http2.Framer, uint32) error{
		"the stream is refused": func(f *http2.Framer, stream uint32) error {
			return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		},
		"the connection goes away before the stream": func(f *http2.Framer, stream uint32) error {
			return f.WriteGoAway(stream-min(stream, 2), http2.ErrCodeNo, nil)
		},
	}
	envoy.EachVersion(t, func(t *testing.T) {
		for name, refuse := range tests {
			t.Run(name, func(t *testing.T) {
				var asked census
				refuses := func(name string) ir.Endpoint {
					return endpoint(raw(t, func(c net.Conn) {
						readRequests(c, true, func(f *http2.Framer, stream uint32) error {
							asked.note(name)
							return refuse(f, stream)
						})
					}), ir.Ready)
				}
				good := endpoint(mortal(t, "good").Address, ir.Ready)
				plain := web(nil, slot("", refuses("a"), refuses("b"), refuses("c"), good))
				divided := halves(nil, nil)
				divided.Routing.Shares = traffic.Shares{{Variation: "stable"}, {Variation: "canary", Weight: traffic.Total, Reserved: traffic.Total}}
				divided.Ports[0].Slots = []ir.Slot{slot("stable", good), slot("canary", refuses("d"), refuses("e"))}
				for _, address := range serve(t, plain, divided) {
					for i := range 24 {
						l := &load{t: t, address: address, by: map[string]int{}}
						sendOne(l, i)
						if d := l.forget(); d["good"] != 1 {
							t.Errorf("request %d: the answers are %v; failed is %q", i, d, l.failed)
						}
						asked.onceAtMost(t)
					}
				}
				if n := asked.reset(); n < 30 {
					t.Errorf("requests were refused %d times", n)
				}
			})
		}
	})
}

// sendOne sends a request of HTTP/2: without a body, with one, or a call of gRPC.
func sendOne(l *load, i int) {
	c := client(l.t, true)
	defer c.CloseIdleConnections()
	switch i % 3 {
	case 0:
		l.ask(c, http.MethodGet, "")
	case 1:
		l.ask(c, http.MethodPost, body)
	default:
		l.call(c)
	}
}

// census counts how often each endpoint was asked.
type census struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

func (c *census) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[name]++
	c.all++
}

// reset returns how often all were asked since the last call.
func (c *census) reset() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.all = c.all, 0
	return n
}

// onceAtMost fails the test if an endpoint was asked twice since the last call.
func (c *census) onceAtMost(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.of {
		if n > 1 {
			t.Errorf("endpoint %s was asked %d times for one request", name, n)
		}
	}
	clear(c.of)
}

// readRequests reads what a client of HTTP/2 sends, and answers each request once: at its head, or
// else when a part of its body has come, if there is one.
func readRequests(c net.Conn, atHead bool, answer func(f *http2.Framer, stream uint32) error) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f, answered := http2.NewFramer(c, c), uint32(0)
	err := f.WriteSettings()
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if atHead || frame.StreamEnded() {
				answered, err = frame.StreamID, answer(f, frame.StreamID)
			}
		case *http2.DataFrame:
			if n := len(frame.Data()); n > 0 {
				err = f.WriteWindowUpdate(0, uint32(n)) //nolint:gosec // the size of a frame
			}
			if err == nil && frame.StreamID > answered {
				answered, err = frame.StreamID, answer(f, frame.StreamID)
			}
		default: // of the connection
		}
	}
}

// A connection is reset while requests wait for it, so none of them was written.
func TestARequestWhoseConnectionIsResetBeforeItGoesToAnotherEndpoint(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		address, end := backend.EndingHole(t)
		s := web(nil, slot("", endpoint(address, ir.Ready), endpoint(mortal(t, "good").Address, ir.Ready)))
		s.Settings.ConnectTimeout = patience
		l := &load{t: t, address: serve(t, s)[0], by: map[string]int{}}
		var clients sync.WaitGroup
		for i := range 12 {
			clients.Go(func() { sendOne(l, i) })
		}
		poll.Until(t, patience, "the proxy connects", func() error { return connecting(address) })
		end()
		clients.Wait()
		l.noneFailed("a connection is reset")
		if by := l.forget(); by["good"] != 12 {
			t.Errorf("the answers are %v", by)
		}
	})
}

// connecting looks in the kernel's table for a connection to an address that is not open yet.
func connecting(address string) error {
	const synSent = "02"
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return err
	}
	var port int
	if _, err := fmt.Sscanf(address, "127.0.0.1:%d", &port); err != nil {
		return err
	}
	remote := fmt.Sprintf("0100007F:%04X", port)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == remote && f[3] == synSent {
			return nil
		}
	}
	return fmt.Errorf("no connection to %s waits", address)
}

// breaking ends requests that a server has read.
var breaking = map[string]func(c net.Conn, f *http2.Framer, stream uint32) error{
	"the connection ends": func(c net.Conn, _ *http2.Framer, _ uint32) error { return c.Close() },
	"the stream is reset": func(_ net.Conn, f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeInternal)
	},
	"the connection goes away with the stream": func(c net.Conn, f *http2.Framer, stream uint32) error {
		if err := f.WriteGoAway(stream, http2.ErrCodeNo, nil); err != nil {
			return err
		}
		return c.Close()
	},
}

// What a server may have seen is sent once, whatever the request and whatever the client says.
func TestNoRequestIsRepeated(t *testing.T) {
	var asked census
	var mu sync.Mutex
	how := breaking["the connection ends"]
	takes := func() ir.Endpoint {
		return endpoint(raw(t, func(c net.Conn) {
			mu.Lock()
			how := how
			mu.Unlock()
			readAny(c, func(f *http2.Framer, stream uint32) error {
				asked.note("any")
				return how(c, f, stream)
			})
		}), ir.Ready)
	}
	address := serve(t, web(nil, slot("", takes(), takes(), takes())))[0]
	requests := map[string]struct {
		method, content, kind string
		http2                 bool
	}{
		"GET":                            {http.MethodGet, "", "", false},
		"POST":                           {http.MethodPost, body, "", false},
		"GET of HTTP/2":                  {http.MethodGet, "", "", true},
		"POST of HTTP/2":                 {http.MethodPost, body, "", true},
		"a call of gRPC":                 {http.MethodPost, emptyMessage, grpcType, true},
		"a body of which a part is sent": {http.MethodPost, "", "part", false},
		"a part of a body, of HTTP/2":    {http.MethodPost, "", "part", true},
	}
	for way, end := range breaking {
		mu.Lock()
		how = end
		mu.Unlock()
		for name, r := range requests {
			if !r.http2 && way != "the connection ends" {
				continue
			}
			t.Run(name+", and "+way, func(t *testing.T) {
				content, stop := io.Reader(strings.NewReader(r.content)), func() {}
				if r.kind == "part" {
					reader, writer := io.Pipe()
					go func() { _, _ = io.WriteString(writer, body) }() // the end of the test ends it
					content, stop = reader, func() { _ = writer.Close() }
				}
				req, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+address+"/", io.MultiReader(content))
				must(t, err)
				req.Header.Set("X-Envoy-Retry-On", "5xx,reset")
				req.Header.Set("X-Envoy-Max-Retries", "5")
				want := http.StatusServiceUnavailable
				if r.kind == grpcType {
					req.Header.Set("Content-Type", grpcType)
					want = http.StatusOK
				}
				resp, err := client(t, r.http2).Do(req)
				must(t, err)
				stop()
				_ = resp.Body.Close() // the status is enough
				if resp.StatusCode != want || r.kind == grpcType && resp.Header.Get("Grpc-Status") != "14" {
					t.Errorf("the status is %d, %v", resp.StatusCode, resp.Header)
				}
				if n := asked.reset(); n != 1 {
					t.Errorf("the upstreams were asked %d times, want once", n)
				}
			})
		}
	}
}

// readAny is readRequests for both protocols; of HTTP/1.1 there are no frames.
func readAny(c net.Conn, answer func(f *http2.Framer, stream uint32) error) {
	r := &peeked{Conn: c}
	if r.begin, _ = io.ReadAll(io.LimitReader(c, 3)); string(r.begin) == http2.ClientPreface[:3] {
		readRequests(r, false, answer)
		return
	}
	if _, err := c.Read(make([]byte, 1<<16)); err == nil {
		_ = answer(nil, 0) // it closes the connection
	}
}

// peeked is a connection of which the first bytes were read.
type peeked struct {
	net.Conn
	begin []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.begin) > 0 {
		n := copy(b, p.begin)
		p.begin = p.begin[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
