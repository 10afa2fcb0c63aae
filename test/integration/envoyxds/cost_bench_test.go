// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkSelfHelp asks in turn over two routes of one Envoy to the same two upstreams: as
// it is, and without retries, ejection and failover. It measures until the answer is there.
func BenchmarkSelfHelp(b *testing.B) {
	stable, canary := []*backend.Mortal{mortal(b, "stable")}, []*backend.Mortal{mortal(b, "canary")}
	p, addresses := arranged(b, halves(stable, canary), halves(stable, canary))
	// The second service is web1.
	for _, c := range p.clusters {
		if slot, _ := envoyname.ParseSlot(c.Name); slot.Service == "web1" {
			c.OutlierDetection = nil
			a := p.endpoints[c.Name]
			a.Endpoints, a.Policy = a.Endpoints[:1], nil
		}
	}
	without := p.routes[envoyname.RouteName("shop", "web1", 80)].VirtualHosts[0]
	without.RetryPolicy, without.RequestBodyBufferLimit = nil, nil
	run(b, p, addresses...)
	clients, took := []*http.Client{client(b, false), client(b, false)}, make([][]time.Duration, 2)
	for n := 0; b.Loop(); n++ {
		for i := range addresses {
			i := (i + n) % len(addresses) // neither is always the first
			begin := time.Now()
			answered(b, clients[i], addresses[i])
			took[i] = append(took[i], time.Since(begin))
		}
	}
	quantile.Report(b, "with", took[0])
	quantile.Report(b, "without", took[1])
}

// BenchmarkEjection ends the only endpoint of a canary that has half of the requests, and
// measures from the begin of the first request that met it to that of the last one. Clients know both by the number
// of attempts, which Envoy tells here.
func BenchmarkEjection(b *testing.B) {
	var took []time.Duration
	met := 0
	for b.Loop() {
		canary := mortal(b, "canary")
		p, addresses := arranged(b, halves([]*backend.Mortal{mortal(b, "stable")}, []*backend.Mortal{canary}))
		p.routes[envoyname.RouteName("shop", "web0", 80)].VirtualHosts[0].IncludeAttemptCountInResponse = true
		run(b, p, addresses...)
		first, last, n := firstAndLast(b, addresses[0], canary)
		took, met = append(took, last.Sub(first)), met+n
	}
	quantile.Report(b, "dead", took)
	b.ReportMetric(float64(met)/float64(b.N), "requests")
}

// firstAndLast ends an upstream under load, and returns when the first request that met it
// began, when the last one did, and how many there were. It looks for a second, which is half of
// the time of the first ejection.
func firstAndLast(b *testing.B, address string, upstream *backend.Mortal) (first, last time.Time, n int) {
	b.Helper()
	const clients, pause = 8, 20 * time.Millisecond
	var mu sync.Mutex
	var all sync.WaitGroup
	done := make(chan struct{})
	for range clients {
		c := client(b, false)
		all.Go(func() {
			ticks := time.NewTicker(pause)
			defer ticks.Stop()
			for {
				begin := time.Now()
				attempts := answered(b, c, address)
				mu.Lock()
				if attempts != "1" {
					if n++; first.IsZero() || begin.Before(first) {
						first = begin
					}
					if begin.After(last) {
						last = begin
					}
				}
				mu.Unlock()
				select {
				case <-done:
					return
				case <-ticks.C:
				}
			}
		})
	}
	<-time.After(pause * 10) // all connections are there
	upstream.End()
	<-time.After(time.Second)
	close(done)
	all.Wait()
	return first, last, n
}

// answered has an answer of one of the upstreams, and returns after how many attempts, if Envoy
// tells. Each other answer fails the benchmark.
func answered(b *testing.B, c *http.Client, address string) (attempts string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	must(b, err)
	resp, err := c.Do(req)
	if err != nil {
		b.Errorf("a request failed: %v", err)
		return ""
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // read to its end
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("a request was answered with %d: %v", resp.StatusCode, err)
	}
	return resp.Header.Get("X-Envoy-Attempt-Count")
}
