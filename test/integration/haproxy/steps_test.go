// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

var (
	canaryArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}
	stableArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "stable"}
)

// A ramp by steps of the Runtime API, through a path of 5 ms, with kept connections: each step counts at
// once for each visitor, none is moved back, no request is lost, no connection ends, and HAProxy counts
// what the visitors saw.
func TestARamp(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 5*time.Millisecond), edgetraffic.StartUpstream(t, "canary", 5*time.Millisecond)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	before := st.counts()
	const visitors = 8
	c := edgetraffic.GatherCrowd(t, st.address, visitors, edgetraffic.OnlyToTheCanary)
	c.AwaitMore(visitors)
	asker, asked := edgetraffic.NewClient(t), 0
	for i, percent := range []traffic.Weight{1, 5, 25, 50, 100} {
		s := portset.Divide(portset.ByHeader, percent*100, uint64(i+2), stableAt, canaryAt)
		st.carryOut(s)
		for user := range 60 {
			name := fmt.Sprint("user-", user)
			got, err := asker.Ask(t, http.MethodPost, st.address, "x-user", name)
			must(t, err)
			if want := arm(s.Routing, name); got.Variation != want {
				t.Fatalf("with %d %% proven, %s is at %s, want %s", percent, name, got.Variation, want)
			}
			asked++
		}
		c.AwaitMore(20 * visitors)
	}
	c.LoseNone()
	if c.Opened() != visitors || asker.Opened() != 1 {
		t.Errorf("%d visitors opened %d connections, and one who asks %d", visitors, c.Opened(), asker.Opened())
	}
	counted := st.counts().Since(before)
	if got := counted[stableArm].Answered + counted[canaryArm].Answered; got != uint64(c.Answered()+asked) || counted[canaryArm].Answered == 0 {
		t.Errorf("HAProxy counts %+v, and visitors had %d answers", counted, c.Answered()+asked)
	}
}

func TestNoRequestGoesToAWeightOfZero(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 5_000, 1, stableAt, canaryAt))
	c := edgetraffic.NewClient(t)
	for _, tc := range []struct {
		weight traffic.Weight
		none   envoyname.Slot
		all    string
	}{{0, canaryArm, "stable"}, {traffic.Total, stableArm, "canary"}} {
		st.carryOut(portset.Divide(portset.ByHeader, tc.weight, uint64(2+tc.weight), stableAt, canaryAt))
		before := st.counts()
		for i := range 300 {
			headers := []string{"x-user", fmt.Sprint("user-", i)}
			got, err := c.Ask(t, http.MethodGet, st.address, headers[:2*(i%2)]...) // each second one is drawn
			must(t, err)
			if got.Variation != tc.all {
				t.Fatalf("with a weight of %d request %d is at %s", tc.weight, i, got.Variation)
			}
		}
		if n := st.counts().Since(before)[tc.none].Answered; n != 0 {
			t.Errorf("%d requests went to %s", n, tc.none)
		}
	}
}

// An entry that somebody edits or deletes is no proof any more, and is put back.
func TestAnEntryThatSomebodyEditsIsNoticed(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	s := portset.Divide(portset.ByHeader, 5_000, 7, stableAt, canaryAt)
	st := newStand(t, s)
	entries := connector.Entries(portset.ReadBack(st, s))
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
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, hanging, edgetraffic.StartUpstream(t, "canary", 0)))
	canaryAt := edgetraffic.StartUpstream(t, "canary", 0)
	ended := make(chan error, 1)
	go func() {
		_, err := edgetraffic.NewClient(t).Ask(t, http.MethodGet, st.address, "x-user", "user-1")
		ended <- err
	}()
	poll.Until(t, patience, "a request is in flight", func() error {
		if n := st.counts().InFlight[stableArm]; n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	sameRules := portset.Divide(portset.ByHeader, 1_000, 2, hanging, canaryAt)
	sameRules.Settings.ConnectTimeout = 2 * time.Second // structure, so the program is reloaded
	st.carryOut(sameRules)
	if workers := st.workers(); workers != 2 {
		t.Fatalf("there are %d workers, want 2 that have the split", workers)
	}
	otherRules := portset.Divide(portset.ByHeader, 2_000, 3, hanging, canaryAt)
	otherRules.Routing.Salt = "s2"
	ports := portset.ReadBack(st, otherRules)
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

// A worker of before a reload divides requests by a split that was removed, until the worker ends.
func TestAWorkerOfBeforeHasTheSplitThatWasRemoved(t *testing.T) {
	release := make(chan struct{})
	hanging, canaryAt := hang(t, release), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, hanging, canaryAt))
	ended := make(chan error, 1)
	go func() {
		_, err := edgetraffic.NewClient(t).Ask(t, http.MethodGet, st.address, "x-user", "user-1")
		ended <- err
	}()
	poll.Until(t, patience, "a request is in flight", func() error {
		if n := st.counts().InFlight[stableArm]; n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	removed := portset.ReadBack(st, web(nil, slot("", canaryAt)))
	late, err := st.carrier.CarryOut(t.Context(), removed)
	must(t, err)
	if len(late) != 1 || !late[0].Old || !strings.Contains(late[0].String(), "it divides requests by plb_shop_web_80@") {
		t.Errorf("late: %v, want the worker of before", late)
	}
	close(release)
	must(t, <-ended)
	poll.Until(t, patience, "the worker of before has ended", func() error {
		late, err := st.carrier.CarryOut(t.Context(), removed)
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
	first, second, canaryAt := edgetraffic.StartUpstream(t, "stable", time.Millisecond), edgetraffic.StartUpstream(t, "stable", time.Millisecond), edgetraffic.StartUpstream(t, "canary", 0)
	at := func(endpoints ...string) ir.Service {
		s := portset.Divide(portset.ByHeader, 0, 1, first, canaryAt)
		s.Ports[0].Slots[0] = slot("stable", endpoints...)
		return s
	}
	st := newStand(t, at(first))
	worker := st.program.Worker().PID
	c := edgetraffic.GatherCrowd(t, st.address, 8, edgetraffic.OnlyToTheCanary)
	for range 5 {
		for _, endpoints := range [][]string{{first, second}, {second}, {second, first}, {first}} {
			st.carryOut(at(endpoints...))
			c.AwaitMore(8)
		}
	}
	c.LoseNone()
	if now := st.program.Worker().PID; now != worker {
		t.Errorf("worker %d is there, and began with %d: it was reloaded", now, worker)
	}
}

// While a variation has no endpoint the stable one answers for it, which is counted apart; forced
// requests are answered with 503.
func TestTheStableVariationAnswersForOneWithoutEndpoints(t *testing.T) {
	s := forced(portset.Divide(portset.ByHeader, traffic.Total, 1, edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)))
	s.Ports[0].Slots[1].Endpoints = nil
	st := newStand(t, s)
	before, c := st.counts(), edgetraffic.NewClient(t)
	for i := range 20 {
		got, err := c.Ask(t, http.MethodGet, st.address, "x-user", fmt.Sprint("user-", i))
		must(t, err)
		if got.Variation != "stable" {
			t.Fatalf("request %d is answered %d by %s", i, got.Status, got.Variation)
		}
	}
	got, err := c.Ask(t, http.MethodGet, st.address, "x-variation", "canary")
	must(t, err)
	if got.Status != http.StatusServiceUnavailable {
		t.Errorf("a forced request is answered %d by %s", got.Status, got.Variation)
	}
	counted := st.counts().Since(before)
	want := connector.Counts{Answered: 20, FailedOver: 20}
	if counted[canaryArm] != want || counted[stableArm].Answered != 0 {
		t.Errorf("counted %+v, want %+v of the canary", counted, want)
	}
}

// What the Runtime API has changed is in the files as well, so a program that starts again has it.
func TestAProgramThatStartsAgainHasTheSplit(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 1_000, 1, stableAt, canaryAt))
	s := portset.Divide(portset.ByHeader, 6_000, 2, canaryAt, stableAt) // other endpoints too
	st.carryOut(s)
	st.program.Stop()
	st.start()
	if late := st.prove(s); len(late) > 0 {
		t.Errorf("late: %v", late)
	}
	names, c := map[string]string{"stable": "canary", "canary": "stable"}, edgetraffic.NewClient(t)
	for i := range 50 {
		user := fmt.Sprint("user-", i)
		got, err := c.Ask(t, http.MethodGet, st.address, "x-user", user)
		must(t, err)
		if want := names[arm(s.Routing, user)]; got.Variation != want {
			t.Fatalf("%s is answered by %s, want %s", user, got.Variation, want)
		}
	}
}

// A worker that hangs is out of sync, and has the split when it goes on.
func TestAWorkerThatHangsIsNoProof(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	s := portset.Divide(portset.ByHeader, 1_000, 1, stableAt, canaryAt)
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
	echoAt, canaryAt := edgetraffic.StartEcho(t), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, echoAt, canaryAt))
	socket := edgetraffic.OpenWebSocket(t, st.address)
	for i := range 100 {
		st.carryOut(portset.Divide(portset.ByHeader, traffic.Weight(i)*100, uint64(i+2), echoAt, canaryAt)) //nolint:gosec // positive
		socket.EchoText(fmt.Sprint("step ", i))
	}
	s := portset.Divide(portset.ByHeader, traffic.Total, 200, echoAt, canaryAt)
	s.Settings.ConnectTimeout = 2 * time.Second
	st.carryOut(s)
	socket.EchoText("after a reload")
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
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	for name, tc := range map[string]struct{ broken, at, want string }{
		"a line that is none":       {"  bnd :1\n", "check", "user.cfg:9"},
		"a port that is taken":      {"  bind " + taken + "\n", "reload", "cannot bind socket"},
		"a file that is unfinished": {"  use_backend \"plb\n", "check", "user.cfg:9"},
	} {
		t.Run(name, func(t *testing.T) {
			s := portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt)
			st := newStand(t, s)
			user := string(read(t, st.file("user.cfg")))
			must(t, os.WriteFile(st.file("user.cfg"), []byte(user+tc.broken), 0o600))
			before := read(t, st.file(connector.ConfigFile))
			other := portset.Divide(portset.ByHeader, traffic.Total, 2, stableAt, canaryAt)
			other.Routing.Salt = "s2" // structure
			var refused *reload.RefusedError
			if _, err := st.carrier.CarryOut(t.Context(), portset.ReadBack(st, other)); !errors.As(err, &refused) || refused.At != tc.at || !strings.Contains(refused.Said, tc.want) {
				t.Errorf("error %v, want a refusal at the %s for %q", err, tc.at, tc.want)
			}
			if !bytes.Equal(before, read(t, st.file(connector.ConfigFile))) {
				t.Error("the file is another one")
			}
			if late := st.prove(s); len(late) > 0 {
				t.Errorf("the split of before is not there: %v", late)
			}
			if tc.at == "check" { // a reload that fails can leave the socket of the hop closed (docs/designs/0013-connectors.md, 27)
				got, err := edgetraffic.NewClient(t).Ask(t, http.MethodGet, st.address, "x-user", "user-1")
				must(t, err)
				if got.Variation != "stable" {
					t.Errorf("answered %d by %s", got.Status, got.Variation)
				}
			}
			must(t, os.WriteFile(st.file("user.cfg"), []byte(user), 0o600))
			st.carryOut(other)
		})
	}
}
