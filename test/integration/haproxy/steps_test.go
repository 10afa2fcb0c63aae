// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/carry"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

var (
	byUser    = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}
	canaryArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}
	stableArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "stable"}
)

// crowd are visitors, each with a connection of its own, who post without a pause.
type crowd struct {
	wg   sync.WaitGroup
	stop chan struct{}

	mu     sync.Mutex
	served map[string]int
	errs   []error
	opened int
}

// begin has visitors ask until end is called. A visitor of the canary that another variation answers is an
// error.
func begin(t *testing.T, address string, visitors int) *crowd {
	t.Helper()
	c := &crowd{stop: make(chan struct{}), served: map[string]int{}}
	for i := range visitors {
		c.wg.Go(func() { c.visit(t, address, fmt.Sprint("user-", i)) })
	}
	t.Cleanup(c.end)
	return c
}

func (c *crowd) visit(t *testing.T, address, user string) {
	client, last := newClient(false), ""
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opened += client.opened
	}()
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		got, err := client.ask(t, http.MethodPost, address, "x-user", user)
		switch {
		case err == nil && got.status != http.StatusOK:
			err = fmt.Errorf("%s was answered %d", user, got.status)
		case err == nil && last == "canary" && got.variation != last:
			err = fmt.Errorf("%s was moved back to %s", user, got.variation)
		}
		last = got.variation
		c.mu.Lock()
		c.served[got.variation]++
		if err != nil {
			c.errs = append(c.errs, err)
		}
		c.mu.Unlock()
	}
}

// end waits until all have their last answer.
func (c *crowd) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
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

// A ramp by steps of the Runtime API, through a path of 5 ms, with kept connections: each step counts at
// once for each visitor, none is moved back, no request is lost, no connection ends, and HAProxy counts
// what the visitors saw.
func TestARamp(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 5*time.Millisecond), upstream(t, "canary", 5*time.Millisecond)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	before := st.counts()
	const visitors = 8
	c := begin(t, st.address, visitors)
	c.more(t, visitors)
	asker, asked := newClient(false), 0
	for i, percent := range []traffic.Weight{1, 5, 25, 50, 100} {
		s := split(byUser, percent*100, uint64(i+2), stableAt, canaryAt)
		st.carryOut(s)
		for user := range 60 {
			name := fmt.Sprint("user-", user)
			got, err := asker.ask(t, http.MethodPost, st.address, "x-user", name)
			must(t, err)
			if want := arm(s.Routing, name); got.variation != want {
				t.Fatalf("with %d %% proven, %s is at %s, want %s", percent, name, got.variation, want)
			}
			asked++
		}
		c.more(t, 20*visitors)
	}
	c.end()
	if len(c.errs) > 0 {
		t.Errorf("%d of %d requests: %v", len(c.errs), c.answered(), errors.Join(c.errs...))
	}
	if c.opened != visitors || asker.opened != 1 {
		t.Errorf("%d visitors opened %d connections, and one who asks %d", visitors, c.opened, asker.opened)
	}
	counted := st.counts().Since(before)
	if got := counted[stableArm].Answered + counted[canaryArm].Answered; got != uint64(c.answered()+asked) || counted[canaryArm].Answered == 0 {
		t.Errorf("HAProxy counts %+v, and visitors had %d answers", counted, c.answered()+asked)
	}
}

func TestNoRequestGoesToAWeightOfZero(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 5_000, 1, stableAt, canaryAt))
	c := newClient(false)
	for _, tc := range []struct {
		weight traffic.Weight
		none   envoyname.Slot
		all    string
	}{{0, canaryArm, "stable"}, {traffic.Total, stableArm, "canary"}} {
		st.carryOut(split(byUser, tc.weight, uint64(2+tc.weight), stableAt, canaryAt))
		before := st.counts()
		for i := range 300 {
			headers := []string{"x-user", fmt.Sprint("user-", i)}
			got, err := c.ask(t, http.MethodGet, st.address, headers[:2*(i%2)]...) // each second one is drawn
			must(t, err)
			if got.variation != tc.all {
				t.Fatalf("with a weight of %d request %d is at %s", tc.weight, i, got.variation)
			}
		}
		if n := st.counts().Since(before)[tc.none].Answered; n != 0 {
			t.Errorf("%d requests went to %s", n, tc.none)
		}
	}
}

// An entry that somebody edits or deletes is no proof any more, and is put back.
func TestAnEntryThatSomebodyEditsIsNoticed(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	s := split(byUser, 5_000, 7, stableAt, canaryAt)
	st := newStand(t, s)
	entries := connector.Entries(st.ports(s))
	if late := st.prove(s); len(late) > 0 {
		t.Fatalf("a program that has just started is late: %v", late)
	}
	file := st.file(connector.SplitsFile)
	for name, tc := range map[string]struct {
		command []string
		want    string
	}{
		"other shares under the sequence": {[]string{"set", "map", file, entries[0].Key, "7:canary:9000:stable"}, "sequence 7 with other shares"},
		"another sequence":                {[]string{"set", "map", file, entries[0].Key, "6:canary:5000:stable"}, "has sequence 6, want 7"},
		"nonsense":                        {[]string{"set", "map", file, entries[0].Key, "nonsense"}, "want SEQUENCE:ARM:END"},
		"the entry is deleted":            {[]string{"del", "map", file, entries[0].Key}, "is not there"},
		"all entries are deleted":         {[]string{"clear", "map", file}, "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := st.program.Worker().Do(t.Context(), tc.command...)
			must(t, err)
			late := st.prove(s)
			if len(late) != 1 || !strings.Contains(late[0].String(), tc.want) {
				t.Errorf("late: %v, want %q", late, tc.want)
			}
			must(t, st.splits().Set(t.Context(), entries))
			if late := st.prove(s); len(late) > 0 {
				t.Errorf("late after it was put back: %v", late)
			}
		})
	}
}

// A worker of before a reload that still answers a request has to have the split too. With the rules of
// before it cannot, and so there is no proof until it ends.
func TestAWorkerOfBeforeIsAskedAsWell(t *testing.T) {
	release := make(chan struct{})
	hanging := hang(t, release)
	st := newStand(t, split(byUser, 0, 1, hanging, upstream(t, "canary", 0)))
	canaryAt := upstream(t, "canary", 0)
	ended := make(chan error, 1)
	go func() {
		_, err := newClient(false).ask(t, http.MethodGet, st.address, "x-user", "user-1")
		ended <- err
	}()
	poll.Until(t, patience, "a request is in flight", func() error {
		if n := st.counts().InFlight[stableArm]; n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	sameRules := split(byUser, 1_000, 2, hanging, canaryAt)
	sameRules.Settings.ConnectTimeout = 2 * time.Second // structure, so the program is reloaded
	st.carryOut(sameRules)
	if workers := st.workers(); workers != 2 {
		t.Fatalf("there are %d workers, want 2 that have the split", workers)
	}
	otherRules := split(byUser, 2_000, 3, hanging, canaryAt)
	otherRules.Routing.Salt = "s2"
	ports := st.ports(otherRules)
	var late []connector.OutOfSync
	poll.Until(t, patience, "the worker in between has ended", func() (err error) {
		if late, err = st.carrier.CarryOut(t.Context(), ports); err == nil && len(late) > 1 {
			err = fmt.Errorf("late: %v", late)
		}
		return err
	})
	if len(late) != 1 || !late[0].Old || !strings.Contains(late[0].String(), "is not there") {
		t.Errorf("late: %v, want the worker of before", late)
	}
	close(release)
	must(t, <-ended)
	poll.Until(t, patience, "the worker of before has ended", func() error {
		late, err := st.splits().Prove(t.Context(), connector.Entries(ports))
		if err == nil && len(late) > 0 {
			err = fmt.Errorf("late: %v", late)
		}
		return err
	})
}

func (st *stand) workers() int {
	st.Helper()
	present, old, err := runtimeapi.Client{Socket: st.program.Master}.Workers(st.Context())
	must(st, err)
	return len(present) + len(old)
}

// Endpoints come and go in slots: without a reload, and without a lost request.
func TestEndpointsComeAndGoWithoutAReload(t *testing.T) {
	first, second, canaryAt := upstream(t, "stable", time.Millisecond), upstream(t, "stable", time.Millisecond), upstream(t, "canary", 0)
	at := func(endpoints ...string) ir.Service {
		s := split(byUser, 0, 1, first, canaryAt)
		s.Ports[0].Slots[0] = slot("stable", endpoints...)
		return s
	}
	st := newStand(t, at(first))
	worker := st.program.Worker().PID
	c := begin(t, st.address, 8)
	for range 5 {
		for _, endpoints := range [][]string{{first, second}, {second}, {second, first}, {first}} {
			st.carryOut(at(endpoints...))
			c.more(t, 8)
		}
	}
	c.end()
	if len(c.errs) > 0 {
		t.Errorf("%d of %d requests: %v", len(c.errs), c.answered(), errors.Join(c.errs...))
	}
	if now := st.program.Worker().PID; now != worker {
		t.Errorf("worker %d is there, and began with %d: it was reloaded", now, worker)
	}
}

// While a variation has no endpoint the stable one answers for it, which is counted apart; forced
// requests are answered with 503.
func TestTheStableVariationAnswersForOneWithoutEndpoints(t *testing.T) {
	s := forced(split(byUser, traffic.Total, 1, upstream(t, "stable", 0), upstream(t, "canary", 0)))
	s.Ports[0].Slots[1].Endpoints = nil
	st := newStand(t, s)
	before, c := st.counts(), newClient(false)
	for i := range 20 {
		got, err := c.ask(t, http.MethodGet, st.address, "x-user", fmt.Sprint("user-", i))
		must(t, err)
		if got.variation != "stable" {
			t.Fatalf("request %d is answered %d by %s", i, got.status, got.variation)
		}
	}
	got, err := c.ask(t, http.MethodGet, st.address, "x-variation", "canary")
	must(t, err)
	if got.status != http.StatusServiceUnavailable {
		t.Errorf("a forced request is answered %d by %s", got.status, got.variation)
	}
	counted := st.counts().Since(before)
	want := connector.Counts{Answered: 20, FailedOver: 20}
	if counted[canaryArm] != want || counted[stableArm].Answered != 0 {
		t.Errorf("counted %+v, want %+v of the canary", counted, want)
	}
}

// What the Runtime API has changed is in the files as well, so a program that starts again has it.
func TestAProgramThatStartsAgainHasTheSplit(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 1_000, 1, stableAt, canaryAt))
	s := split(byUser, 6_000, 2, canaryAt, stableAt) // other endpoints too
	st.carryOut(s)
	st.program.Stop()
	st.start()
	if late := st.prove(s); len(late) > 0 {
		t.Errorf("late: %v", late)
	}
	names, c := map[string]string{"stable": "canary", "canary": "stable"}, newClient(false)
	for i := range 50 {
		user := fmt.Sprint("user-", i)
		got, err := c.ask(t, http.MethodGet, st.address, "x-user", user)
		must(t, err)
		if want := names[arm(s.Routing, user)]; got.variation != want {
			t.Fatalf("%s is answered by %s, want %s", user, got.variation, want)
		}
	}
}

// A worker that hangs is out of sync, and has the split when it goes on.
func TestAWorkerThatHangsIsNoProof(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	s := split(byUser, 1_000, 1, stableAt, canaryAt)
	st := newStand(t, s)
	worker := st.program.Worker().PID
	must(t, syscall.Kill(worker, syscall.SIGSTOP))
	late := st.prove(s)
	must(t, syscall.Kill(worker, syscall.SIGCONT))
	if len(late) != 1 || late[0].PID != worker {
		t.Errorf("late: %v, want the worker %d that hangs", late, worker)
	}
	if late := st.prove(s); len(late) > 0 {
		t.Errorf("late when it goes on: %v", late)
	}
}

// A WebSocket goes on through steps and a reload; the worker that has it stays to be asked.
func TestAWebSocketOutlivesStepsAndAReload(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }() // when the client is gone
		for {
			kind, text, err := conn.Read(r.Context())
			if err != nil || conn.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	echoAt, canaryAt := server.Listener.Addr().String(), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, echoAt, canaryAt))
	conn, _, err := websocket.Dial(t.Context(), "ws://"+st.address+"/", nil) //nolint:bodyclose // the library says that it needs no end
	must(t, err)
	defer func() { _ = conn.CloseNow() }() // all was read
	echo := func(text string) {
		t.Helper()
		must(t, conn.Write(t.Context(), websocket.MessageText, []byte(text)))
		if _, got, err := conn.Read(t.Context()); err != nil || string(got) != text {
			t.Fatalf("%q comes back as %q (%v)", text, got, err)
		}
	}
	for i := range 100 {
		st.carryOut(split(byUser, traffic.Weight(i)*100, uint64(i+2), echoAt, canaryAt)) //nolint:gosec // positive
		echo(fmt.Sprint("step ", i))
	}
	s := split(byUser, traffic.Total, 200, echoAt, canaryAt)
	s.Settings.ConnectTimeout = 2 * time.Second
	st.carryOut(s)
	echo("after a reload")
	if n := st.workers(); n != 2 {
		t.Errorf("there are %d workers, want the one of before as well", n)
	}
}

// A configuration that HAProxy refuses changes nothing, and comes back with HAProxy's own words: at the
// check where a person has broken a file, at the reload where a port is taken.
func TestAConfigurationThatHAProxyRefusesChangesNothing(t *testing.T) {
	taken := freeport.Address(t)
	l, err := net.Listen("tcp", taken) //nolint:noctx // closed below
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // nobody connects
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	for name, tc := range map[string]struct{ broken, at, want string }{
		"a line that is none":       {"  bnd :1\n", "check", "user.cfg:9"},
		"a port that is taken":      {"  bind " + taken + "\n", "reload", "cannot bind socket"},
		"a file that is unfinished": {"  use_backend \"plb\n", "check", "user.cfg:9"},
	} {
		t.Run(name, func(t *testing.T) {
			s := split(byUser, 0, 1, stableAt, canaryAt)
			st := newStand(t, s)
			user := string(read(t, st.file("user.cfg")))
			must(t, os.WriteFile(st.file("user.cfg"), []byte(user+tc.broken), 0o600))
			before := read(t, st.file(connector.ConfigFile))
			other := split(byUser, traffic.Total, 2, stableAt, canaryAt)
			other.Routing.Salt = "s2" // structure
			var refused *carry.RefusedError
			if _, err := st.carrier.CarryOut(t.Context(), st.ports(other)); !errors.As(err, &refused) || refused.At != tc.at || !strings.Contains(refused.Said, tc.want) {
				t.Errorf("error %v, want a refusal at the %s for %q", err, tc.at, tc.want)
			}
			if !bytes.Equal(before, read(t, st.file(connector.ConfigFile))) {
				t.Error("the file is another one")
			}
			if late := st.prove(s); len(late) > 0 {
				t.Errorf("the split of before is not there: %v", late)
			}
			if tc.at == "check" { // a reload that fails can leave the socket of the hop closed (docs/designs/0013-connectors.md, 27)
				got, err := newClient(false).ask(t, http.MethodGet, st.address, "x-user", "user-1")
				must(t, err)
				if got.variation != "stable" {
					t.Errorf("answered %d by %s", got.status, got.variation)
				}
			}
			must(t, os.WriteFile(st.file("user.cfg"), []byte(user), 0o600))
			st.carryOut(other)
		})
	}
}
