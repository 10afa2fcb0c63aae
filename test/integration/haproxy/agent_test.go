// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/agent"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// The agent starts its HAProxy with what the server says, acknowledges each step once the step is
// proven, and shows of which kind its program is.
func TestAnAgentAcknowledgesStepsThatAreProven(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	p.publish(split(byUser, 0, 1, stableAt, canaryAt))
	e := newEdge(t, p, "")
	p.acknowledged(1)
	worker := e.worker()
	for i, percent := range []traffic.Weight{5, 50, 100, 20} {
		s := split(byUser, percent*100, uint64(i+2), stableAt, canaryAt)
		p.publish(s)
		p.acknowledged(s.Sequence)
		e.divides(s)
	}
	if now := e.worker(); now != worker {
		t.Errorf("steps reloaded the HAProxy: worker %d, was %d", now, worker)
	}
	c, _, err := p.route()
	must(t, err)
	if c.Kind != "haproxy" || c.Node != "shop/edge-0" {
		t.Errorf("the proxy shows kind %q and node %q", c.Kind, c.Node)
	}
	e.signal(syscall.SIGTERM)
	e.wait()
}

// With replicas away the program goes on, and the agent finds the one that is there. After a restart
// with no replica the program has the split of before.
func TestAnAgentHoldsWhileReplicasAreAway(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	at := func(sequence uint64) {
		t.Helper()
		p.publish(split(byUser, traffic.Weight(sequence)*1_000, sequence, stableAt, canaryAt)) //nolint:gosec // small
		p.acknowledged(sequence)
	}
	p.publish(split(byUser, 1_000, 1, stableAt, canaryAt))
	e := newEdge(t, p, "")
	p.acknowledged(1)
	for i, r := range p.replicas {
		p.stop(r)
		at(uint64(i) + 2) //nolint:gosec // small
		p.start(r)
	}
	for _, r := range p.replicas {
		p.stop(r)
	}
	held := split(byUser, 3_000, 3, stableAt, canaryAt)
	e.divides(held)
	e.kill()
	e.write("token", "second")
	e.start()
	poll.Until(t, patience, "the HAProxy answers", func() error {
		_, err := newClient(false).ask(t, http.MethodGet, e.address, "x-user", "user-1")
		return err
	})
	e.divides(held)
	for _, r := range p.replicas {
		p.start(r)
	}
	at(4)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tokens["second"] {
		t.Error("the agent has not shown the token that it has now")
	}
}

// A file of a user that somebody has broken is refused in HAProxy's words; the split of before serves,
// and once the file is mended the next one is there without a further change.
func TestAnAgentRefusesInTheWordsOfHAProxy(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	first := split(byUser, 5_000, 1, stableAt, canaryAt)
	p.publish(first)
	e := newEdge(t, p, "")
	p.acknowledged(1)
	before := e.configuration()
	e.write("user.cfg", e.user()+"  bnd :1\n")
	second := split(byUser, 5_000, 2, stableAt, canaryAt)
	second.Routing.Salt = "s2" // structure
	p.publish(second)
	e.refusal("user.cfg:9")
	if e.configuration() != before {
		t.Error("the file is another one")
	}
	e.divides(first)
	e.write("user.cfg", e.user())
	p.acknowledged(2)
	e.divides(second)
}

// A worker that is stopped proves nothing: the server hears which one is late, and later that it is not.
func TestAnAgentNamesTheWorkerThatIsLate(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	p.publish(split(byUser, 1_000, 1, stableAt, canaryAt))
	e := newEdge(t, p, "")
	p.acknowledged(1)
	worker := e.worker()
	must(t, syscall.Kill(worker, syscall.SIGSTOP))
	second := split(byUser, 9_000, 2, stableAt, canaryAt)
	p.publish(second)
	e.refusal(fmt.Sprint("worker ", worker))
	must(t, syscall.Kill(worker, syscall.SIGCONT))
	p.acknowledged(2)
	e.divides(second)
}

// An agent that is stopped acknowledges nothing, and its HAProxy goes on.
func TestAnAgentThatIsStoppedAcknowledgesNothing(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	first, second := split(byUser, 1_000, 1, stableAt, canaryAt), split(byUser, 9_000, 2, stableAt, canaryAt)
	p.publish(first)
	e := newEdge(t, p, "")
	p.acknowledged(1)
	e.signal(syscall.SIGSTOP)
	p.publish(second)
	poll.Until(t, patience, "the route is on the way", func() error {
		if _, s, err := p.route(); err != nil || s.Stage != ads.OnTheWay {
			return errors.Join(fmt.Errorf("it is %s", s.Stage), err)
		}
		return nil
	})
	e.divides(first)
	e.signal(syscall.SIGCONT)
	p.acknowledged(2)
	e.divides(second)
}

// An agent that is killed at any moment of a change of the structure comes up with the old or the next
// split, and carries the next one out.
func TestAnAgentThatIsKilledCarriesOn(t *testing.T) {
	rotation.Share(t, 3)
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	for _, point := range agent.Points() {
		t.Run(string(point), func(t *testing.T) {
			p := newPlane(t)
			p.publish(split(byUser, 5_000, 1, stableAt, canaryAt))
			armed := filepath.Join(t.TempDir(), "armed")
			e := newEdge(t, p, "failpoints", "PLUMBLINE_AGENT_FAILPOINT="+string(point), "PLUMBLINE_AGENT_FAILPOINT_ARMED="+armed)
			p.acknowledged(1)
			must(t, os.WriteFile(armed, nil, 0o600))
			second := split(byUser, 7_000, 2, stableAt, canaryAt)
			second.Routing.Salt = "s2"
			p.publish(second)
			e.wait()
			if _, err := os.Stat(armed); err == nil {
				t.Fatal("the agent ended elsewhere")
			}
			e.start()
			p.acknowledged(2)
			e.divides(second)
		})
	}
}

// A store that somebody has damaged is ignored, and a folder without room for a store costs no step.
func TestAnAgentWithoutAStoreFollows(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	p.publish(split(byUser, 1_000, 1, stableAt, canaryAt))
	e := newEdge(t, p, "")
	p.acknowledged(1)
	e.kill()
	store := filepath.Join(e.folder, "state", "resources")
	must(t, os.WriteFile(store, []byte(strings.Replace(string(read(t, store)), "shop", "shoq", 1)), 0o600))
	e.start()
	p.acknowledged(1)
	must(t, os.Remove(store))
	must(t, os.Mkdir(store, 0o700)) // no file can be there
	second := split(byUser, 9_000, 2, stableAt, canaryAt)
	p.publish(second)
	p.acknowledged(2)
	e.divides(second)
}

// The server counts what the clients saw, by the names of the slots.
func TestCountsOfAnAgentAreThoseOfTheClients(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	p := newPlane(t)
	p.publish(split(byUser, 3_000, 1, stableAt, canaryAt))
	e := newEdge(t, p, "")
	p.acknowledged(1)
	served, c := map[string]uint64{}, newClient(false)
	for i := range 300 {
		got, err := c.ask(t, http.MethodGet, e.address, "x-user", fmt.Sprint("user-", i))
		must(t, err)
		served[got.variation]++
	}
	poll.Until(t, patience, "the server has the counts of the clients", func() error {
		counted := map[string]uint64{}
		for _, r := range p.replicas {
			for _, v := range r.counts.Service("shop", "web", time.Time{}).Variations {
				counted[v.Name] += v.Total[signals.Completed]
			}
		}
		if counted["stable"] != served["stable"] || counted["canary"] != served["canary"] {
			return fmt.Errorf("counted %v, served %v", counted, served)
		}
		return nil
	})
}
