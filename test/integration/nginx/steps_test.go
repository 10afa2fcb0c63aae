// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	connector "github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

var (
	byUser    = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}
	canaryArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}
	stableArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "stable"}
)

// answered is the sum of what the lines say of both variations.
func (st *stand) answered() int {
	counts, unread := st.lines.Counts()
	if unread > 0 {
		st.Errorf("%d lines are not read", unread)
	}
	return int(counts[stableArm].Answered + counts[canaryArm].Answered) //nolint:gosec // a few thousand
}

// A ramp through a path of 12 ms each way, with kept connections: where a step is proven each visitor is at
// its arm, none is moved back, no request is lost, and the lines say what the visitors saw.
func TestARamp(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	c := begin(t, delayed(t, st.address, 12*time.Millisecond), 8, true)
	c.more(t, 8)
	asker, asked := newClient(), 0
	for i, percent := range []traffic.Weight{1, 5, 25, 50, 100} {
		s := split(byUser, percent*100, uint64(i+2), stableAt, canaryAt)
		st.carryOut(s)
		for user := range 60 {
			name := fmt.Sprint("user-", user)
			got, _, err := asker.ask(t, st.address, "x-user", name)
			must(t, err)
			if want := arm(s.Routing, name); got != want {
				t.Fatalf("with %d %% proven, %s is at %s, want %s", percent, name, got, want)
			}
			asked++
		}
		c.more(t, 80)
	}
	c.end()
	if len(c.errs) > 0 {
		t.Errorf("%d of %d requests: %v", len(c.errs), c.answered(), errors.Join(c.errs...))
	}
	poll.Until(t, patience, "all lines are read", func() error {
		if got := st.answered(); got != c.answered()+asked {
			return fmt.Errorf("the lines have %d requests, and visitors had %d answers", got, c.answered()+asked)
		}
		return nil
	})
}

// Each step is a reload, and the next one does not wait for the proof.
func TestStepsLoseNoRequest(t *testing.T) {
	steps := 15
	if os.Getenv("PLUMBLINE_LONG") != "" {
		steps = 100
	}
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	c := begin(t, delayed(t, st.address, 12*time.Millisecond), 8, false)
	c.more(t, 8)
	for i := range steps {
		s := split(byUser, traffic.Weight(i*97%10_000), uint64(i+2), stableAt, canaryAt) //nolint:gosec // positive
		_, err := st.carrier.CarryOut(t.Context(), st.ports(s))
		must(t, err)
		c.more(t, 4)
	}
	c.end()
	if len(c.errs) > 0 {
		t.Errorf("%d of %d requests: %v", len(c.errs), c.answered(), errors.Join(c.errs...))
	}
	t.Logf("%d steps, %d requests, %d lost", steps, c.answered(), len(c.errs))
}

func TestAConfigurationThatThePersonBrokeIsRefused(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	user, err := os.ReadFile(st.user)
	must(t, err)
	before, err := os.ReadFile(st.file(connector.ConfigFile))
	must(t, err)
	writeUser(t, st.folder, st.address, "\nnonsense on;")
	other := split(byUser, traffic.Total, 2, stableAt, canaryAt)
	_, err = st.carrier.CarryOut(t.Context(), st.ports(other))
	if refused, is := errors.AsType[*carry.RefusedError](err); !is || refused.At != "check" || !strings.Contains(refused.Said, `unknown directive "nonsense" in `+st.user) {
		t.Errorf("error %v, want a refusal at the check for the directive of %s", err, st.user)
	}
	if after, err := os.ReadFile(st.file(connector.ConfigFile)); err != nil || string(after) != string(before) {
		t.Errorf("the file is another one (%v)", err)
	}
	got, _, err := newClient().ask(t, st.address)
	must(t, err)
	if got != "stable" {
		t.Errorf("answered by %s", got)
	}
	must(t, os.WriteFile(st.user, user, 0o600))
	st.carryOut(other)
}

// A master that is stopped takes no files: the step is an error, and the files are those of before.
func TestAReloadThatHangs(t *testing.T) {
	if os.Getenv("PLUMBLINE_LONG") == "" {
		t.Skip("it waits for 15 s: PLUMBLINE_LONG is not set")
	}
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	before, err := os.ReadFile(st.file(connector.ConfigFile))
	must(t, err)
	st.program.Signal(syscall.SIGSTOP)
	other := split(byUser, traffic.Total, 2, stableAt, canaryAt)
	if late, err := st.carrier.CarryOut(t.Context(), st.ports(other)); err == nil {
		t.Errorf("a master that is stopped has the files: late %v", late)
	}
	if after, err := os.ReadFile(st.file(connector.ConfigFile)); err != nil || string(after) != string(before) {
		t.Errorf("the file is another one (%v)", err)
	}
	st.program.Signal(syscall.SIGCONT)
	st.carryOut(other)
}

// A worker of before that is stopped has its sockets and would accept again.
func TestAWorkerOfBeforeThatIsStopped(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	pid := st.worker()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	other := split(byUser, traffic.Total, 2, stableAt, canaryAt)
	late := st.late(other)
	poll.Until(t, patience, "only the stopped worker is late", func() error {
		if late = st.late(other); len(late) != 1 || late[0].PID != pid {
			return fmt.Errorf("late: %v, want worker %d", late, pid)
		}
		return nil
	})
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	st.carryOut(other)
}

// A WebSocket holds a worker of before a step. Its connection was decided long ago: the step is proven
// beside it, and the WebSocket stays.
func TestAWebSocketHoldsNoProof(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client sees it
		}
		for {
			kind, text, err := conn.Read(r.Context())
			if err != nil || conn.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	t.Cleanup(echo.Close)
	echoAt, canaryAt := echo.Listener.Addr().String(), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, echoAt, canaryAt))
	conn, _, err := websocket.Dial(t.Context(), "ws://"+st.address, nil) //nolint:bodyclose // it has none
	must(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() }) // the test is over
	say := func(text string) {
		t.Helper()
		must(t, conn.Write(t.Context(), websocket.MessageText, []byte(text)))
		_, got, err := conn.Read(t.Context())
		must(t, err)
		if string(got) != text {
			t.Errorf("heard %q, want %q", got, text)
		}
	}
	say("before")
	for i := range 3 {
		st.carryOut(split(byUser, traffic.Total, uint64(i+2), echoAt, canaryAt)) //nolint:gosec // positive
		say(fmt.Sprint("after step ", i))
	}
}

// A program that is killed starts with the last files, and a carrier that knows of none proves them.
func TestAProgramThatIsKilledComesUpRight(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	s := split(byUser, traffic.Total, 2, stableAt, canaryAt)
	st.carryOut(s)
	st.program.Stop()
	if late, err := st.carrier.CarryOut(t.Context(), st.ports(s)); err == nil && len(late) == 0 {
		t.Error("a program that has ended is proven")
	}
	must(t, errors.Join(os.Remove(st.file(connector.ProbeSocket)), os.Remove(st.file("nginx.pid"))))
	st.start()
	got, _, err := newClient().ask(t, st.address)
	must(t, err)
	if got != "canary" {
		t.Errorf("answered by %s before a carrier came", got)
	}
	st.carryOut(s)
}

// Files that a person edits and loads are no proof, and are put back.
func TestFilesThatAPersonEdits(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	s := split(byUser, 0, 7, stableAt, canaryAt)
	st := newStand(t, s)
	files, err := connector.Render(st.options(), st.ports(split(byUser, traffic.Total, 7, stableAt, canaryAt)))
	must(t, err)
	must(t, os.WriteFile(st.file(connector.ConfigFile), files.Config, 0o600))
	st.program.Signal(syscall.SIGHUP)
	poll.Until(t, patience, "the edit is noticed", func() error {
		late := st.late(s)
		if len(late) == 0 || !strings.Contains(fmt.Sprint(late), "a new connection has the files") {
			return fmt.Errorf("late: %v", late)
		}
		return nil
	})
	st.carryOut(s)
	got, _, err := newClient().ask(t, st.address)
	must(t, err)
	if got != "stable" {
		t.Errorf("answered by %s", got)
	}
}

// Endpoints alone wait for a second, and the program is late until then.
func TestNewEndpointsWait(t *testing.T) {
	stableAt, canaryAt := upstream(t, "stable", 0), upstream(t, "canary", 0)
	st := newStand(t, split(byUser, 0, 1, stableAt, canaryAt))
	s := split(byUser, 0, 2, stableAt, canaryAt)
	st.carryOut(s)
	begin := time.Now()
	s = split(byUser, 0, 3, stableAt, canaryAt)
	if late := st.late(s); strings.Contains(fmt.Sprint(late), "wait for") {
		t.Errorf("a step waits: %v", late)
	}
	s.Ports[0].Slots[0].Endpoints = append([]ir.Endpoint(nil), s.Ports[0].Slots[1].Endpoints...)
	if late := st.late(s); time.Since(begin) < connector.EndpointPause && !strings.Contains(fmt.Sprint(late), "wait for") {
		t.Errorf("new endpoints do not wait: %v", late)
	}
	st.carryOut(s)
}
