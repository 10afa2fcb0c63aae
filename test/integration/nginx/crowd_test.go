// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// murmur2 is the hash of split_clients, by its definition.
func murmur2(text string) uint32 {
	const m, r = 0x5bd1e995, 24
	data := []byte(text)
	h := uint32(len(data)) //nolint:gosec // a short text
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data) * m
		k = (k ^ k>>r) * m
		h = h*m ^ k
		data = data[4:]
	}
	for i, b := range slices.Backward(data) {
		h ^= uint32(b) << (8 * i)
	}
	if len(data) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// arm is the variation of a visitor: the first segment whose end is above the visitor's hash.
func arm(r *traffic.Routing, visitor string) string {
	hash, end := uint64(murmur2(r.Salt+"|"+visitor)), uint64(0)
	segments := r.Shares.Layout()
	for _, s := range segments {
		end += uint64(s.Weight) * 0xffffffff / uint64(traffic.Total) //nolint:gosec // no weight is below 0
		if hash < end {
			return s.Variation
		}
	}
	return segments[len(segments)-1].Variation
}

// delayed carries connections to an address, each direction with a delay, and returns its own address. On a
// path without a delay no request is on its way when a worker closes its connection.
func delayed(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // all was carried
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close() // which the client sees
				continue
			}
			go delay1(there, from, delay)
			go delay1(from, there, delay)
		}
	}()
	return l.Addr().String()
}

// delay1 carries one direction.
func delay1(to, from net.Conn, delay time.Duration) {
	type chunk struct {
		at    time.Time
		bytes []byte
	}
	chunks := make(chan chunk, 1_000)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 4096)
			n, err := from.Read(b)
			if n > 0 {
				chunks <- chunk{time.Now().Add(delay), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		<-time.After(time.Until(c.at))
		if _, err := to.Write(c.bytes); err != nil {
			break
		}
	}
	<-time.After(delay) // the end of a connection is on its way as long as a byte
	_ = to.Close()      // the other direction ends with it
	_, _ = io.Copy(io.Discard, from)
}

// crowd are visitors, each with a connection of its own, who post without a pause.
type crowd struct {
	wg   sync.WaitGroup
	stop chan struct{}
	once sync.Once

	mu     sync.Mutex
	served map[string]int
	errs   []error
}

// begin has visitors ask until end is called. A visitor of the canary that another variation answers is an
// error if stays.
func begin(t *testing.T, address string, visitors int, stays bool) *crowd {
	t.Helper()
	c := &crowd{stop: make(chan struct{}), served: map[string]int{}}
	for i := range visitors {
		c.wg.Go(func() { c.visit(t, address, fmt.Sprint("user-", i), stays) })
	}
	t.Cleanup(c.end)
	return c
}

func (c *crowd) visit(t *testing.T, address, user string, stays bool) {
	client, last := newClient(), ""
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		got, _, err := client.ask(t, address, "x-user", user)
		if err == nil && stays && last == "canary" && got != last {
			err = fmt.Errorf("%s was moved back to %s", user, got)
		}
		last = got
		c.mu.Lock()
		c.served[got]++
		if err != nil {
			c.errs = append(c.errs, err)
		}
		c.mu.Unlock()
	}
}

// end waits until all have their last answer.
func (c *crowd) end() {
	c.once.Do(func() { close(c.stop) })
	c.wg.Wait()
}

func (c *crowd) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served["stable"] + c.served["canary"]
}

// more waits until so many requests more were answered.
func (c *crowd) more(t *testing.T, n int) {
	t.Helper()
	before := c.answered()
	poll.Until(t, patience, "requests are answered", func() error {
		if now := c.answered(); now < before+n {
			return fmt.Errorf("%d of %d are", now-before, n)
		}
		return nil
	})
}
