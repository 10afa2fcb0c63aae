// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M11: a real Envoy is killed with requests in flight and started again at once. The time is a
// gap, and the requests count against no variation.
func TestAnEnvoyThatIsStartedAgainIsAGapAndFailsNoRequest(t *testing.T) {
	p, c := newPlane(t, 4*time.Second), newClient(t)
	published, listeners := p.publish(split(web, upstream(t, "stable"), upstream(t, "canary")))
	kill := p.proxy("web-0", listeners...)
	answers := func() {
		t.Helper()
		poll.Until(t, patience, "the proxy has its routes", func() error {
			if status, by := c.ask(published[0], "u", request{path: pathOK}); status != http.StatusOK || by == "" {
				return fmt.Errorf("the status is %d", status)
			}
			return nil
		})
	}
	answers()
	p.flushes(2)
	var waiting atomic.Int64
	for i := range 20 { // requests that the upstream does not answer while the test runs
		waiting.Add(1)
		go func() {
			defer waiting.Add(-1)
			c.ask(published[0], fmt.Sprint("user", i), request{path: pathHangs})
		}()
	}
	poll.Until(t, patience, "a flush tells of the requests in flight", func() error {
		var n uint64
		for _, v := range p.counts.Service("shop", web, time.Now()).Variations {
			n += v.InFlight
		}
		if n < 20 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	kill()
	poll.True(t, patience, "the requests have ended with the proxy", func() bool { return waiting.Load() == 0 })
	p.proxy("web-0", listeners...)
	answers()
	p.flushes(3)
	got := p.counts.Service("shop", web, time.Now().Add(-10*time.Minute))
	if got.Gapped != 1 || len(got.Gaps) != 1 {
		t.Errorf("the gaps are %v of %d proxies, want one", got.Gaps, got.Gapped)
	}
	for _, v := range got.Variations {
		if _, failed := v.Total.Outcomes(); failed != 0 || v.Total[signals.Canceled] != 0 {
			t.Errorf("%d requests failed of %s, %d of these were given up", failed, v.Name, v.Total[signals.Canceled])
		}
	}
}
