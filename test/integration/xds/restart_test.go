// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/asker"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// long is enough for two that try again ever later, up to half a minute: the server its
// lists, and the proxy its stream.
const long = 3 * patience

// A server that starts while the API server is away knows of no Service. It tells its
// proxies nothing of that: what they have they keep, and then they are told what changed.
func TestAServerThatStartsWithoutTheAPIServerTellsNothing(t *testing.T) {
	c := ownCluster(t, manifest)
	r := c.start(t, "one")
	s := c.shop(t, enabled)
	slice := s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	e, front := s.proxy(r, s.copied().Data[inject.CAKey], "front-0", s.token(s.pod("front-0", proxied)), "web")
	backend.Answers(t, patience, front, "200 one")
	told := &answered{counts: map[string]int{}}
	asker.Start(t, front, 20*time.Millisecond, told.add)
	applied := updates(t, e)

	s.must(apiserver.Kill(c.server))
	s.must(r.Stop())
	again := c.launch(t, r.address, "one")
	poll.Until(t, patience, "it lives", func() error {
		code, _, err := again.Get(t.Context(), again.Health, "/healthz")
		if err == nil && code != 200 {
			err = fmt.Errorf("%d", code)
		}
		return err
	})
	before := connections(t, e)
	poll.Until(t, long, "the proxy has tried to come back", func() error {
		if code, body, err := again.Get(t.Context(), again.Health, "/readyz"); err == nil && code == 200 {
			t.Fatalf("it says that it is ready: %s", body)
		}
		if n := connections(t, e) - before; n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if now := updates(t, e); now != applied {
		t.Errorf("the proxy has applied %s, and before %s", now, applied)
	}
	told.only(t, "200 one")

	s.must(apiserver.Revive(c.server))
	s.move(slice, backend.Start(t, "two"))
	poll.Until(t, long, "the proxy is told of the change", func() error { return told.has("200 two") })
	told.only(t, "200 one", "200 two")
	s.must(again.Ready(t.Context()))
}

// updates is what an Envoy has applied of what it was sent.
func updates(t *testing.T, e *envoy.Envoy) string {
	t.Helper()
	text, err := e.Get(t.Context(), `/stats?filter=(cds|lds|rds.*|shop.*)\.update_(success|rejected)$`)
	if err != nil || !strings.Contains(text, "cds.update_success") {
		t.Fatalf("%v in %q", err, text)
	}
	return text
}

// answered is what was answered, and how often.
type answered struct {
	mu     sync.Mutex
	counts map[string]int
}

func (a *answered) add(answer asker.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[answer.Text]++
}

// has says whether somebody was answered so.
func (a *answered) has(text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts[text] == 0 {
		return fmt.Errorf("the answers are %v", a.counts)
	}
	return nil
}

// only these were answered, and each of them was.
func (a *answered) only(t *testing.T, texts ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range texts {
		if a.counts[text] == 0 {
			t.Errorf("nobody was answered %q", text)
		}
	}
	if len(a.counts) != len(texts) {
		t.Errorf("the answers are %v", a.counts)
	}
}
