// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// outcomes are what clients saw: the requests of users of a variation, by who answered.
type outcomes struct {
	mu sync.Mutex
	of map[[2]string]uint64
}

func (o *outcomes) note(drawn, by string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[[2]string{drawn, by}]++
}

func (o *outcomes) get(drawn, by string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[[2]string{drawn, by}]
}

// A canary ends and comes back, again and again. Requests are tried twice, its endpoint is
// ejected, and the stable variation serves its share. What is counted is what the clients saw, to
// the last request.
func TestCountsAreThoseOfTheClientsWhileACanaryComesAndGoes(t *testing.T) {
	p, c := newPlane(t, 200*time.Millisecond), newClient(t)
	named := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Variation", name) }
	}
	canary := backend.NewMortal(t, named("canary"))
	published, listeners := p.publish(split(web, backend.NewMortal(t, named("stable")).Address, canary.Address))
	p.proxy("web-0", listeners...)
	p.flushes(1)
	address := published[0]
	poll.Until(t, patience, "the proxy has its routes", func() error {
		if status, _ := c.ask(address, "u", request{path: pathOK}); status != http.StatusOK {
			return fmt.Errorf("the status is %d", status)
		}
		return nil
	})
	of := map[string]string{}
	for i := range 40 {
		user := fmt.Sprint("user", i)
		_, of[user] = c.ask(address, user, request{path: pathOK})
	}
	p.flushes(3)
	before, saw := p.totals(web), &outcomes{of: map[[2]string]uint64{}}
	stop := p.askAll(t, c, address, of, saw)
	t.Cleanup(stop)
	for range 3 {
		canary.End()
		atLeast(t, "requests of the canary's users are served by the stable variation", 30, func() uint64 { return saw.get("canary", "stable") })
		canary.Start()
		atLeast(t, "the canary serves its users again", 30, func() uint64 { return saw.get("canary", "canary") })
	}
	stop()
	p.flushes(2)
	for key, n := range saw.of {
		if key[1] == "" || key == [2]string{"stable", "canary"} {
			t.Errorf("%d requests of users of %s were answered by %q", n, key[0], key[1])
		}
	}
	want := map[string]map[string]uint64{
		"stable": {"completed": saw.get("stable", "stable"), "2xx": saw.get("stable", "stable")},
		"canary": {
			"completed": saw.get("canary", "canary"), "2xx": saw.get("canary", "canary"),
			failedOver: saw.get("canary", "stable"),
		},
	}
	poll.Until(t, patience, "what the clients saw is counted", func() error {
		got, after := map[string]map[string]uint64{}, p.totals(web)
		for variation := range want {
			got[variation] = since(before[variation], after[variation], attempts).Counters
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-want +got):\n%s", d)
		}
		return nil
	})
	after := p.totals(web)
	if n := after["canary"][signals.Retried] - before["canary"][signals.Retried]; n == 0 {
		t.Error("no request was tried twice")
	}
	t.Logf("%v", saw.of)
}

// atLeast waits for so many more.
func atLeast(t *testing.T, what string, more uint64, count func() uint64) {
	t.Helper()
	want := count() + more
	poll.Until(t, patience, what, func() error {
		if n := count(); n < want {
			return fmt.Errorf("%d, want %d", n, want)
		}
		return nil
	})
}

// askAll asks as all users until it is stopped.
func (p *plane) askAll(t *testing.T, c *client, address string, of map[string]string, saw *outcomes) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var users sync.WaitGroup
	for user, drawn := range of {
		users.Go(func() {
			ticks := time.NewTicker(50 * time.Millisecond)
			defer ticks.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticks.C:
					status, by := c.ask(address, user, request{path: pathOK})
					if status != http.StatusOK {
						by = ""
					}
					saw.note(drawn, by)
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(done); users.Wait() })
}
