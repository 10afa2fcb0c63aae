// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/netns"
	"github.com/plumbline-dev/plumbline/test/harness/procfs"
)

// BenchmarkLoss loses the packets of one of two endpoints, with the times that proxies have: when the
// last request began that failed, how many failed, and of how many that began until then.
func BenchmarkLoss(b *testing.B) {
	for b.Loop() {
		a := newAbyss(b, 0)
		_, lost := a.loseUnderLoad(b, 20*time.Millisecond)
		for _, l := range a.loads {
			o := l.leaves(lost, 3*time.Minute)
			name := strings.ReplaceAll(l.name, " ", "-")
			b.ReportMetric(o.began.Sub(lost).Seconds(), "s-last-"+name)
			b.ReportMetric(o.over.Sub(lost).Seconds(), "s-over-"+name)
			b.ReportMetric(float64(o.failed), "failed-"+name)
			b.ReportMetric(float64(l.began(lost, o.began)), "began-"+name)
		}
	}
}

// began counts the requests that began between two moments.
func (l *openLoad) began(from, to time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sent {
		if !s.begin.Before(from) && !s.begin.After(to) {
			n++
		}
	}
	return n
}

// BenchmarkIdleConnections measures what a thousand connections to an endpoint cost that have no
// request: the bytes of the network in both directions, and the processor time of the proxy. It
// does so for the keep-alive of HTTP/2 ports, which is the more frequent one, and without any.
func BenchmarkIdleConnections(b *testing.B) {
	const connections, watched = 1000, 30 * time.Second
	for _, probed := range []bool{true, false} {
		b.Run(fmt.Sprintf("probed=%t", probed), func(b *testing.B) {
			for b.Loop() {
				near, far := netns.New(b), netns.New(b)
				near.IP(b, "link set lo up")
				near.Join(b, far, "eth0")
				near.IP(b, "addr add 192.0.2.1/24 dev eth0", "link set eth0 up")
				far.IP(b, "addr add 192.0.2.2/24 dev eth0", "link set eth0 up")
				var all sync.WaitGroup
				all.Add(connections)
				s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { all.Done(); all.Wait() })}
				go func() { _ = s.Serve(far.Listen(b, "192.0.2.2:8080")) }() // ends with the benchmark
				b.Cleanup(func() { _ = s.Close() })
				service := web(nil, slot("", endpoint("192.0.2.2:8080", ir.Ready)))
				service.Ports[0].Protocol, service.Settings.IdleTimeout = ir.HTTP2, time.Hour
				p, addresses := arranged(b, service)
				p.network = near
				if !probed {
					p.clusters[0].UpstreamConnectionOptions = nil
				}
				pid := run(b, p, addresses...)
				askAtOnce(b, near, addresses[0], connections)
				bytes, took := transferred(b, near), spent(b, pid)
				<-time.After(watched)
				each := float64(connections) * watched.Seconds()
				b.ReportMetric((transferred(b, near)-bytes)/each, "B/s/connection")
				b.ReportMetric((spent(b, pid)-took).Seconds()/each*1e6, "µs-cpu/s/connection")
			}
		})
	}
}

// askAtOnce has so many requests under way at one time, and waits for their answers.
func askAtOnce(b *testing.B, in *netns.Namespace, address string, n int) {
	b.Helper()
	c := client(b, false)
	c.Timeout = 10 * patience
	c.Transport.(*http.Transport).DialContext = in.Dial
	var asked sync.WaitGroup
	for range n {
		asked.Go(func() { answered(b, c, address) })
	}
	asked.Wait()
}

// transferred are the bytes that eth0 of a namespace has received and sent.
func transferred(b *testing.B, in *netns.Namespace) float64 {
	b.Helper()
	var text []byte
	must(b, in.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	}))
	for line := range strings.Lines(string(text)) {
		if name, numbers, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "eth0" {
			var n [9]float64
			for i, word := range strings.Fields(numbers)[:len(n)] {
				_, err := fmt.Sscan(word, &n[i])
				must(b, err)
			}
			return n[0] + n[8]
		}
	}
	b.Fatalf("eth0 is not in %s", text)
	return 0
}

// spent is the processor time of a process.
func spent(b *testing.B, pid int) time.Duration {
	b.Helper()
	s, err := procfs.ReadStat(pid)
	must(b, err)
	return s.Processor
}
