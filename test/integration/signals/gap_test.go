// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// away answers nobody at the port of the server, and counts who comes.
func (p *plane) away(t *testing.T) (came *atomic.Int64, back func()) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))) //nolint:noctx // closed below
	must(t, err)
	came, done := &atomic.Int64{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_ = c.Close() // it is to fail
		}
	}()
	return came, func() {
		must(t, l.Close())
		<-done
	}
}

// answered is how many requests of a variation are.
func (p *plane) answered() (n uint64) {
	for _, total := range p.totals(web) {
		n += total[signals.Completed]
	}
	return n
}

// begin has a proxy serve a split, and says where.
func (p *plane) begin(t *testing.T, c *client) (address string, sent *atomic.Int64) {
	t.Helper()
	published, listeners := p.publish(split(web, upstream(t, "stable"), upstream(t, "canary")))
	p.proxy("web-0", listeners...)
	sent = &atomic.Int64{}
	poll.Until(t, patience, "the proxy has its routes", func() error {
		if status, by := c.ask(published[0], "u", request{path: pathOK}); status != http.StatusOK || by == "" {
			return fmt.Errorf("the status is %d", status)
		}
		sent.Add(1)
		return nil
	})
	return published[0], sent
}

// send requests until that is enough.
func send(c *client, address string, sent *atomic.Int64, enough func() bool) {
	for i := 0; !enough(); i++ {
		c.ask(address, fmt.Sprint("user", i), request{path: pathOK})
		sent.Add(1)
	}
}

// so many of them.
func exactly(n int) func() bool { return func() bool { n--; return n < 0 } }

func (p *plane) allCounted(t *testing.T, want int64) {
	t.Helper()
	poll.Until(t, patience, "all requests are counted", func() error {
		if got := p.answered(); got != uint64(want) { //nolint:gosec // above zero
			return fmt.Errorf("%d are, want %d", got, want)
		}
		return nil
	})
}

// While nobody listens, what a proxy counts is lost, and it is known that something is.
func TestWhatIsCountedWhileTheServerIsAwayIsAGap(t *testing.T) {
	p, c := newPlane(t, 250*time.Millisecond), newClient(t)
	address, sent := p.begin(t, c)
	send(c, address, sent, exactly(50))
	p.flushes(3)
	before := sent.Load()
	p.allCounted(t, before)
	p.stop()
	begin, last := time.Now(), time.Unix(0, p.last.Load())
	came, back := p.away(t)
	send(c, address, sent, func() bool { return came.Load() >= 8 })
	back()
	end, lost := time.Now(), sent.Load()-before
	p.start()
	p.flushes(2)
	between := int64(p.answered()) - before //nolint:gosec // a few
	if between < 0 || between >= lost {
		t.Fatalf("%d of the %d are counted that were answered meanwhile", between, lost)
	}
	send(c, address, sent, exactly(70))
	p.allCounted(t, before+between+70)
	p.flushes(3)
	p.allCounted(t, before+between+70) // nothing twice

	got := p.counts.Service("shop", web, begin.Add(-time.Minute))
	if got.Gapped != 1 || len(got.Gaps) != 1 {
		t.Fatalf("the gaps are %v of %d proxies, want one", got.Gaps, got.Gapped)
	}
	if g := got.Gaps[0]; g.Proxy.Name != "web-0" || g.From.After(begin) || g.From.Before(last.Add(-time.Second)) || g.To.Before(g.From) || g.To.After(end.Add(5*time.Second)) {
		t.Errorf("the gap is %+v, and the server was away from %v to %v", g, begin, end)
	}
	for _, v := range got.Variations {
		if v.Proxies != 1 || v.Silent != 0 {
			t.Errorf("%d proxies tell of %s, and %d are silent", v.Proxies, v.Name, v.Silent)
		}
	}
}

// A stream that breaks between two flushes loses nothing, and it is known that nothing
// is lost. So it is when a connection ends because it is old.
func TestAStreamThatBreaksBetweenTwoFlushesLosesNothing(t *testing.T) {
	p, c := newPlane(t, 2*time.Second), newClient(t)
	address, sent := p.begin(t, c)
	for range 3 {
		send(c, address, sent, exactly(40))
		p.flushes(2) // right after one
		send(c, address, sent, exactly(10))
		p.stop()
		p.start()
		send(c, address, sent, exactly(10))
	}
	poll.Until(t, patience, "as many are counted as the gaps allow", func() error {
		gaps, answered := p.counts.Service("shop", web, time.Now().Add(-10*time.Minute)).Gaps, int64(p.answered()) //nolint:gosec // a few
		if answered > sent.Load() || answered < sent.Load() && len(gaps) == 0 {
			return fmt.Errorf("%d of %d are, with the gaps %v", answered, sent.Load(), gaps)
		}
		return nil
	})
}
