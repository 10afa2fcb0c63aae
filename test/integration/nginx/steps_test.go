// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/nginx"
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
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	c := edgetraffic.GatherCrowd(t, edgetraffic.StartDelay(t, st.address, 12*time.Millisecond), 8, edgetraffic.OnlyToTheCanary)
	c.AwaitMore(8)
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
		c.AwaitMore(80)
	}
	c.LoseNone()
	poll.Until(t, patience, "all lines are read", func() error {
		if got := st.answered(); got != c.Answered()+asked {
			return fmt.Errorf("the lines have %d requests, and visitors had %d answers", got, c.Answered()+asked)
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
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	c := edgetraffic.GatherCrowd(t, edgetraffic.StartDelay(t, st.address, 12*time.Millisecond), 8, edgetraffic.AnyWay)
	c.AwaitMore(8)
	for i := range steps {
		s := portset.Divide(portset.ByHeader, traffic.Weight(i*97%10_000), uint64(i+2), stableAt, canaryAt) //nolint:gosec // positive
		_, err := st.carrier.CarryOut(t.Context(), portset.ReadBack(st, s))
		must(t, err)
		c.AwaitMore(4)
	}
	c.LoseNone()
	t.Logf("%d steps, %d requests", steps, c.Answered())
}

func TestAConfigurationThatThePersonBrokeIsRefused(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	user, err := os.ReadFile(st.user)
	must(t, err)
	before, err := os.ReadFile(st.file(connector.ConfigFile))
	must(t, err)
	writeUser(t, st.folder, st.address, "\nnonsense on;")
	other := portset.Divide(portset.ByHeader, traffic.Total, 2, stableAt, canaryAt)
	_, err = st.carrier.CarryOut(t.Context(), portset.ReadBack(st, other))
	if refused, is := errors.AsType[*reload.RefusedError](err); !is || refused.At != "check" || !strings.Contains(refused.Said, `unknown directive "nonsense" in `+st.user) {
		t.Errorf("error %v, want a refusal at the check for the directive of %s", err, st.user)
	}
	if after, err := os.ReadFile(st.file(connector.ConfigFile)); err != nil || string(after) != string(before) {
		t.Errorf("the file is another one (%v)", err)
	}
	got, err := edgetraffic.NewClient(t).Ask(t, http.MethodPost, st.address)
	must(t, err)
	if got.Variation != "stable" {
		t.Errorf("answered by %s", got.Variation)
	}
	must(t, os.WriteFile(st.user, user, 0o600))
	st.carryOut(other)
}

// A master that is stopped takes no files: the step is an error, and the files are those of before.
func TestAReloadThatHangs(t *testing.T) {
	if os.Getenv("PLUMBLINE_LONG") == "" {
		t.Skip("it waits for 15 s: PLUMBLINE_LONG is not set")
	}
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	before, err := os.ReadFile(st.file(connector.ConfigFile))
	must(t, err)
	st.program.Signal(syscall.SIGSTOP)
	other := portset.Divide(portset.ByHeader, traffic.Total, 2, stableAt, canaryAt)
	if late, err := st.carrier.CarryOut(t.Context(), portset.ReadBack(st, other)); err == nil {
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
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	pid := st.worker()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	other := portset.Divide(portset.ByHeader, traffic.Total, 2, stableAt, canaryAt)
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
	echoAt, canaryAt := edgetraffic.StartEcho(t), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, echoAt, canaryAt))
	socket := edgetraffic.OpenWebSocket(t, st.address)
	socket.EchoText("before")
	for i := range 3 {
		st.carryOut(portset.Divide(portset.ByHeader, traffic.Total, uint64(i+2), echoAt, canaryAt)) //nolint:gosec // positive
		socket.EchoText(fmt.Sprint("after step ", i))
	}
}

// A program that is killed starts with the last files, and a carrier that knows of none proves them.
func TestAProgramThatIsKilledComesUpRight(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	s := portset.Divide(portset.ByHeader, traffic.Total, 2, stableAt, canaryAt)
	st.carryOut(s)
	st.program.Stop()
	if late, err := st.carrier.CarryOut(t.Context(), portset.ReadBack(st, s)); err == nil && len(late) == 0 {
		t.Error("a program that has ended is proven")
	}
	must(t, errors.Join(os.Remove(st.file(connector.ProbeSocket)), os.Remove(st.file("nginx.pid"))))
	st.start()
	got, err := edgetraffic.NewClient(t).Ask(t, http.MethodPost, st.address)
	must(t, err)
	if got.Variation != "canary" {
		t.Errorf("answered by %s before a carrier came", got.Variation)
	}
	st.carryOut(s)
}

// Files that a person edits and loads are no proof, and are put back.
func TestFilesThatAPersonEdits(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	s := portset.Divide(portset.ByHeader, 0, 7, stableAt, canaryAt)
	st := newStand(t, s)
	files, err := connector.Render(st.options(), portset.ReadBack(st, portset.Divide(portset.ByHeader, traffic.Total, 7, stableAt, canaryAt)))
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
	got, err := edgetraffic.NewClient(t).Ask(t, http.MethodPost, st.address)
	must(t, err)
	if got.Variation != "stable" {
		t.Errorf("answered by %s", got.Variation)
	}
}

// Endpoints alone wait for a second, and the program is late until then.
func TestNewEndpointsWait(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	st := newStand(t, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	s := portset.Divide(portset.ByHeader, 0, 2, stableAt, canaryAt)
	st.carryOut(s)
	begin := time.Now()
	s = portset.Divide(portset.ByHeader, 0, 3, stableAt, canaryAt)
	if late := st.late(s); strings.Contains(fmt.Sprint(late), "wait for") {
		t.Errorf("a step waits: %v", late)
	}
	s.Ports[0].Slots[0].Endpoints = append([]ir.Endpoint(nil), s.Ports[0].Slots[1].Endpoints...)
	if late := st.late(s); time.Since(begin) < connector.EndpointPause && !strings.Contains(fmt.Sprint(late), "wait for") {
		t.Errorf("new endpoints do not wait: %v", late)
	}
	st.carryOut(s)
}

// While a variation has no endpoint that answers, those of the stable one do, and their requests are counted apart.
func TestTheStableVariationAnswersForOneWithoutEndpoints(t *testing.T) {
	stableAt, away := edgetraffic.StartUpstream(t, "stable", 0), freeport.Address(t)
	for name, change := range map[string]func(*ir.Slot){
		"it has none":       func(s *ir.Slot) { s.Endpoints = nil },
		"its own is not up": func(*ir.Slot) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := portset.Divide(portset.ByHeader, traffic.Total, 1, stableAt, away)
			change(&s.Ports[0].Slots[1])
			st := newStand(t, s)
			c := edgetraffic.NewClient(t)
			const requests = 20
			for i := range requests {
				got, err := c.Ask(t, http.MethodGet, st.address, "x-user", fmt.Sprint("user-", i))
				must(t, err)
				if got.Variation != "stable" {
					t.Fatalf("request %d is answered %d by %s", i, got.Status, got.Variation)
				}
			}
			poll.Until(t, patience, "all lines are read", func() error {
				counts, _ := st.lines.Counts()
				if want := (connector.Counts{Answered: requests, FailedOver: requests}); counts[canaryArm] != want || counts[stableArm].Answered > 0 {
					return fmt.Errorf("counted %+v", counts)
				}
				return nil
			})
		})
	}
}
