// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// The flood: more handshakes at once than the webhook has places for.
const (
	floodAddresses = 20
	floodEach      = 64
	floodTime      = 5 * time.Second
	floodMost      = 200_000
)

// clientHello is the first message of a handshake, with its record header.
// Whoever sends it again and again makes the server compute for nearly nothing.
func clientHello(t *testing.T) []byte {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		_ = tls.Client(near, &tls.Config{InsecureSkipVerify: true}).Handshake()
		close(done)
	}()
	header := make([]byte, 5)
	if _, err := io.ReadFull(far, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(far, body); err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	<-done
	return slices.Concat(header, body)
}

// flood begins handshakes without a pause and ends none.
type flood struct {
	hello                     []byte
	dialled, answered, closed atomic.Int64
}

// one begins a handshake, waits until the server has computed its part or has
// closed the connection, and goes away.
func (f *flood) one(a attacker) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.address)}, Timeout: 10 * time.Second}
	c, err := dialer.Dial("tcp", a.to)
	if err != nil {
		return
	}
	f.dialled.Add(1)
	defer func() { _ = c.Close() }()
	_ = c.(*net.TCPConn).SetLinger(0) // No connection lingers, or the ports would run out.
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(f.hello); err != nil {
		f.closed.Add(1)
		return
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		f.closed.Add(1)
		return
	}
	f.answered.Add(1)
}

// run floods from all addresses until the time is over.
func (f *flood) run(to string) {
	deadline := time.Now().Add(floodTime)
	var wg sync.WaitGroup
	for n := range floodAddresses * floodEach {
		a := attacker{fmt.Sprintf("127.0.1.%d", 1+n%floodAddresses), to}
		wg.Go(func() {
			for time.Now().Before(deadline) && f.dialled.Load() < floodMost {
				f.one(a)
			}
		})
	}
	wg.Wait()
}

// handshakeCounts are the webhook's own figures, of one moment.
type handshakeCounts struct{ computing, underWay, done, failed, refused float64 }

func (c handshakeCounts) ended() float64 { return c.done + c.failed + c.refused }

// handshakesOf gives the figures; not ok while the webhook does not answer.
func handshakesOf(tb testing.TB, p *process) (c handshakeCounts, ok bool) {
	tb.Helper()
	_, page, err := p.get(p.Metrics, "/metrics")
	if err != nil {
		return c, false
	}
	sum := func(name string, labels ...string) float64 {
		return sumSamples(tb, page, "plumbline_admission_"+name, labels...)
	}
	return handshakeCounts{
		computing: sum("handshakes", `state="computing"`),
		underWay:  sum("handshakes"),
		done:      sum("handshakes_total"),
		failed:    sum("handshake_errors_total"),
		refused:   sum("handshakes_refused_total") + sum("connections_refused_total", `reason="caller"`),
	}, true
}

// watchHandshakes looks at the figures until stop is closed, and gives the largest ones.
func watchHandshakes(tb testing.TB, p *process, stop <-chan struct{}) (most handshakeCounts, looks int) {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return most, looks
		case <-tick.C:
		}
		if c, ok := handshakesOf(tb, p); ok {
			most.computing, most.underWay = max(most.computing, c.computing), max(most.underWay, c.underWay)
			looks++
		}
	}
}

// underFlood is what became of the API server's writes meanwhile.
type underFlood struct {
	hook          *process
	most          handshakeCounts
	sent, missing int
	gaveUp        float64
	connections   float64 // of the API server
	late          float64 // of these had no turn within a second
	displaced     []string
}

// readRefusals reads from the log which connections of the API server were refused:
// those that were late, and the lines about others.
func (u *underFlood) readRefusals() {
	u.late, u.displaced = 0, nil
	for line := range strings.Lines(u.hook.Said()) {
		switch {
		case !strings.Contains(line, "admission.connection.refused") || !strings.Contains(line, `"from":"127.0.0.1"`):
		case strings.Contains(line, `"reason":"turn"`):
			u.late++
		default:
			u.displaced = append(u.displaced, line)
		}
	}
}

// accounted says whether each connection of the API server had its handshake, or was
// late: the API server may use another one then, without giving up.
func (u *underFlood) accounted(done float64) error {
	if u.readRefusals(); done+u.late != u.connections {
		return fmt.Errorf("the API server opened %v connections and did %v handshakes, %v were late", u.connections, done, u.late)
	}
	return nil
}

// floodWebhook floods one with the given flags while the API server writes.
func floodWebhook(t *testing.T, hello []byte, flags ...string) underFlood {
	t.Helper()
	t.Setenv("GOMEMLIMIT", chartGoMemoryLimit)
	// Short-lived connections: the API server has handshakes to do all the time.
	r := startReplicas(t, 1, append([]string{"--connection-age=1s", "--log-level=debug"}, flags...)...)
	u := underFlood{hook: r.hooks[0]}
	p := newPlace(t, unchanged)
	count, stopProbes := startProbes(t, p, 2)
	eventually(t, "the probes run", func() bool { sent, _, _ := count(); return sent > 20 })

	opened := failOpen(t)
	sentBefore, missingBefore, _ := count()
	calls := apiServerMetrics(t)
	f, stop := &flood{hello: hello}, make(chan struct{})
	var watching sync.WaitGroup
	var looks int
	watching.Go(func() { u.most, looks = watchHandshakes(t, u.hook, stop) })
	f.run(fmt.Sprintf("127.0.0.1:%d", u.hook.port))
	sent, missing, lastErr := count()
	close(stop)
	watching.Wait()
	after := apiServerMetrics(t)
	stopProbes()
	u.sent, u.missing, u.gaveUp = sent-sentBefore, missing-missingBefore, failOpen(t)-opened

	// Whatever was accepted is counted once.
	var end handshakeCounts
	eventually(t, "all handshakes have ended", func() bool {
		var ok bool
		end, ok = handshakesOf(t, u.hook)
		return ok && end.underWay == 0 && end.ended() >= float64(f.dialled.Load()+r.service.next.Load())
	})
	u.connections = float64(r.service.next.Load())
	if all := float64(f.dialled.Load()) + u.connections; end.ended() != all {
		t.Errorf("%v connections have ended, %v were opened", end.ended(), all)
	}
	_, peak, err := replay.ResidentBytes(u.hook.PID())
	if err != nil {
		t.Fatal(err)
	}
	if peak >= chartMemoryLimit {
		t.Errorf("%d MiB were resident", peak>>20)
	}
	const webhook = "spec-hash.plumbline.dev"
	p50, n := quantile(buckets(calls, webhook), buckets(after, webhook), .5)
	p99, _ := quantile(buckets(calls, webhook), buckets(after, webhook), .99)
	t.Logf("flood: %d connections, %d computed for, %d closed; %v refused; at most %v computed at once and %v under way (%d looks); resident at most %d MiB",
		f.dialled.Load(), f.answered.Load(), f.closed.Load(), end.refused, u.most.computing, u.most.underWay, looks, peak>>20)
	t.Logf("API server: %d writes, %d without a stamp (last error %v), gave up on %v of %v calls, which took p50 ≤ %v s and p99 ≤ %v s; %v connections, %v handshakes done",
		u.sent, u.missing, lastErr, u.gaveUp, n, p50, p99, u.connections, end.done)
	u.readRefusals()
	if u.gaveUp == 0 {
		// The log comes after the count.
		poll.Until(t, patience, "every connection is accounted for", func() error { return u.accounted(end.done) })
	}
	if float64(u.missing) > u.gaveUp && lastErr == nil {
		t.Errorf("%d writes have no stamp, the API server gave up on %v calls", u.missing, u.gaveUp)
	}
	return u
}

// The processors are shared by attackers, API server and webhook here, so how
// long a call takes is logged and not asserted. What is asserted holds however
// slow the machine is.
func TestHandshakesWithoutPauseDoNotDisplaceTheAPIServer(t *testing.T) {
	hello := clientHello(t)
	t.Run("with the bound", func(t *testing.T) {
		u := floodWebhook(t, hello, "--max-handshakes=1")
		if u.most.computing > 1 {
			t.Errorf("%v handshakes were computed at once", u.most.computing)
		}
		// One that was closed counts until its goroutine has ended.
		if u.most.underWay > 2*admission.MaxHandshakes {
			t.Errorf("%v handshakes were under way at once", u.most.underWay)
		}
		// A turn comes in time if the machine has any time; a place is there always.
		for _, line := range u.displaced {
			t.Errorf("the API server was displaced: %s", line)
		}
		t.Logf("%v of the API server's %v handshakes had no turn within a second", u.late, u.connections)
	})
	// For comparison: how many are computed at once then is chance, and logged.
	t.Run("without the bound", func(t *testing.T) {
		floodWebhook(t, hello, fmt.Sprintf("--max-handshakes=%d", admission.MaxHandshakes))
	})
}
