// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"crypto/tls"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// What the chart gives a replica: webhook.goMemoryLimit and
// webhook.resources.limits.memory.
const (
	chartGoMemoryLimit = "200MiB"
	chartMemoryLimit   = 256 << 20
)

// occupy takes the only place of the caller 127.0.0.1 with a body that does not
// end, again and again, until stop is closed.
func occupy(hook *process, stop <-chan struct{}) {
	a := attacker{"127.0.0.1", fmt.Sprintf("127.0.0.1:%d", hook.port)}
	for {
		s := &slowCallers{}
		s.one(a, func() {}, stop)
		select {
		case <-stop:
			return
		default:
		}
	}
}

func TestBeyondItsCapacityTheWebhookShedsAndSaysSo(t *testing.T) {
	r := startReplicas(t, 1, "--max-concurrent=1")
	hook := r.hooks[0]
	guarded(t, replayNamespace, 1)
	roots, records := publishedRoots(t), recorded(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { occupy(hook, stop) })
	eventually(t, "the only place is taken", func() bool { return hook.metric("plumbline_admission_in_flight") == 1 })
	before := hook.metric("plumbline_admission_unassessed_total", `reason="shed"`)
	// All are sent in a fifth of the time for which one body holds the place.
	result, err := replay.Run(t.Context(), replay.Config{
		Target: target(hook), Roots: roots, Records: records,
		Rate: 150, Duration: time.Second, Timeout: 30 * time.Second, Names: 100,
	})
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	// Every answer allows, or Run counts it as an error.
	if result.Failed() != 0 {
		t.Errorf("%d of %d reviews had no answer that allows", result.Failed(), result.Sent)
	}
	// Nobody waits for the place: those that were not shed came when it was free.
	if result.Shed < result.Sent/2 {
		t.Errorf("%d of %d were shed while the only place was taken", result.Shed, result.Sent)
	}
	// The mark in the answer is the audit annotation; the metric counts the same.
	if n := hook.metric("plumbline_admission_unassessed_total", `reason="shed"`) - before; n != float64(result.Shed) {
		t.Errorf("%v counted as shed, %d marked", n, result.Shed)
	}
}

// slowCallers open connections from several addresses, announce a megabyte
// each, and send it byte by byte.
type slowCallers struct {
	opened, refused, ended atomic.Int64
}

func (s *slowCallers) one(a attacker, dialled func(), stop <-chan struct{}) {
	conn, err := a.dial()
	dialled()
	if err != nil {
		s.refused.Add(1)
		return
	}
	defer func() { _ = conn.Close() }()
	s.opened.Add(1)
	head := "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1048576\r\n\r\n" + begin
	if _, err := conn.Write([]byte(head + `,"object":"`)); err != nil {
		s.ended.Add(1)
		return
	}
	s.dribble(conn, stop)
}

func (s *slowCallers) dribble(conn *tls.Conn, stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	piece := []byte(strings.Repeat("x", 1024))
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if _, err := conn.Write(piece); err != nil {
			s.ended.Add(1)
			return
		}
	}
}

func TestTenThousandSlowCallersNeitherFillTheMemoryNorDisplaceTheAPIServer(t *testing.T) {
	t.Setenv("GOMEMLIMIT", chartGoMemoryLimit)
	r := startReplicas(t, 1)
	hook := r.hooks[0]
	p := newPlace(t, unchanged)
	opened := failOpen(t)
	count, stopProbes := startProbes(t, p, 2)
	eventually(t, "the probes run", func() bool { sent, _, _ := count(); return sent > 20 })

	const callers, addresses = 10_000, 20
	s, stop := &slowCallers{}, make(chan struct{})
	var wg sync.WaitGroup
	// Handshakes at once. Attacker, API server and webhook share the processors
	// here: more of them would take these from the API server, not its place.
	places := make(chan struct{}, 2*runtime.NumCPU())
	for n := range callers {
		a := attacker{fmt.Sprintf("127.0.1.%d", 1+n%addresses), fmt.Sprintf("127.0.0.1:%d", hook.port)}
		places <- struct{}{}
		wg.Go(func() { s.one(a, func() { <-places }, stop) })
	}
	sent, _, _ := count()
	eventually(t, "the API server is served meanwhile", func() bool { now, _, _ := count(); return now > sent+50 })
	held := hook.metric("plumbline_admission_connections")
	eventually(t, "slow bodies are cut off", func() bool { return s.ended.Load() > 500 })
	close(stop)
	wg.Wait()
	stopProbes()

	now, peak, err := replay.ResidentBytes(hook.PID())
	if err != nil {
		t.Fatal(err)
	}
	all, missing, lastErr := count()
	t.Logf("%d callers: %d connected, %d refused, %d cut off; %v held at once; resident %d MiB, at most %d MiB; %d writes meanwhile",
		callers, s.opened.Load(), s.refused.Load(), s.ended.Load(), held, now>>20, peak>>20, all)
	if peak >= chartMemoryLimit {
		t.Errorf("%d MiB were resident, the limit is %d", peak>>20, chartMemoryLimit>>20)
	}
	if held > 1536 {
		t.Errorf("%v connections at once", held)
	}
	if missing != 0 {
		t.Errorf("%d of %d writes had no stamp; last error %v", missing, all, lastErr)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	if n := hook.metric("plumbline_admission_unassessed_total", `reason="panic"`); n != 0 {
		t.Errorf("%v panics", n)
	}
}
