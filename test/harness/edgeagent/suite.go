// SPDX-License-Identifier: Apache-2.0

package edgeagent

import (
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
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

// world is an agent beside a program, with an upstream for each variation.
type world struct {
	*Agent
	stableAt, canaryAt string
}

// begin starts an agent, and waits until the agent has acknowledged the split of sequence 1.
func begin(t *testing.T, program Program, canary traffic.Weight, tags string, variables ...string) world {
	t.Helper()
	w := world{stableAt: edgetraffic.StartUpstream(t, "stable", 0), canaryAt: edgetraffic.StartUpstream(t, "canary", 0)}
	p := NewPlane(t)
	p.Publish(w.divide(canary, 1))
	w.Agent = StartAgent(t, p, program, tags, variables...)
	w.AwaitAcknowledged(1)
	return w
}

func (w world) divide(canary traffic.Weight, sequence uint64) ir.Service {
	return portset.Divide(portset.ByHeader, canary, sequence, w.stableAt, w.canaryAt)
}

// resalt returns a split with another salt, which each program loads by a reload.
func (w world) resalt(canary traffic.Weight, sequence uint64) ir.Service {
	s := w.divide(canary, sequence)
	s.Routing.Salt = "s2"
	return s
}

// CheckProvenSteps checks that the agent starts its program with the resources of the server, acknowledges each step
// once the step is proven, shows the kind of its program, and ends with its program on an order.
func CheckProvenSteps(t *testing.T, program Program) {
	w := begin(t, program, 0, "")
	worker := w.Worker()
	for i, percent := range []traffic.Weight{5, 50, 100, 20} {
		s := w.divide(percent*100, uint64(i+2)) //nolint:gosec // small
		w.Publish(s)
		w.AwaitAcknowledged(s.Sequence)
		w.CheckDivided(s)
	}
	if now := w.Worker(); now != worker != w.Reloads {
		t.Errorf("after four steps the worker is %d, was %d", now, worker)
	}
	c, _, err := w.FindRoute()
	if err != nil || c.Kind != w.Kind || c.Node != "shop/edge-0" {
		t.Errorf("the proxy shows kind %q and node %q (%v)", c.Kind, c.Node, err)
	}
	w.SendSignal(syscall.SIGTERM)
	w.AwaitEnd()
}

// CheckHolding checks that the program goes on while replicas are away, and that the agent finds the replica that is
// there. After a restart without a replica the program has the split of before.
func CheckHolding(t *testing.T, program Program) {
	w := begin(t, program, 1_000, "")
	for i := range w.replicas {
		w.StopReplica(i)
		w.Publish(w.divide(traffic.Weight(i+2)*1_000, uint64(i+2))) //nolint:gosec // small
		w.AwaitAcknowledged(uint64(i + 2))                          //nolint:gosec // small
		w.StartReplica(i)
	}
	for i := range w.replicas {
		w.StopReplica(i)
	}
	held := w.divide(3_000, 3)
	w.CheckDivided(held)
	w.KillProcess()
	w.WriteFile("token", "second")
	w.StartProcess()
	w.AwaitAnswer()
	w.CheckDivided(held)
	for i := range w.replicas {
		w.StartReplica(i)
	}
	w.Publish(w.divide(4_000, 4))
	w.AwaitAcknowledged(4)
	if !w.HasSeen("second") {
		t.Error("the agent has not shown the token that it has now")
	}
}

// CheckRefusal checks that a broken configuration of the user is refused in the words of the program, and that the
// split of before serves. The next split follows once the user has mended the configuration.
func CheckRefusal(t *testing.T, program Program) {
	w := begin(t, program, 5_000, "")
	before := w.ReadRules()
	w.WriteUser(w.Broken)
	second := w.resalt(5_000, 2)
	w.Publish(second)
	w.AwaitRefusal(w.Refusal)
	if w.ReadRules() != before {
		t.Error("the file is another one")
	}
	w.CheckDivided(w.divide(5_000, 1))
	w.WriteUser("")
	w.AwaitAcknowledged(2)
	w.CheckDivided(second)
}

// CheckLateWorker checks that a stopped worker is no proof, that the server shows its PID, and that the agent reports
// the proof that comes later.
func CheckLateWorker(t *testing.T, program Program) {
	w := begin(t, program, 1_000, "")
	worker := w.Worker()
	signalProcess(t, worker, syscall.SIGSTOP)
	second := w.divide(9_000, 2)
	w.Publish(second)
	w.AwaitRefusal(fmt.Sprint("worker ", worker))
	signalProcess(t, worker, syscall.SIGCONT)
	w.AwaitAcknowledged(2)
	w.CheckDivided(second)
}

func signalProcess(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// CheckStoppedAgent checks that a stopped agent acknowledges no split, and that its program goes on.
func CheckStoppedAgent(t *testing.T, program Program) {
	w := begin(t, program, 1_000, "")
	w.SendSignal(syscall.SIGSTOP)
	second := w.divide(9_000, 2)
	w.Publish(second)
	w.AwaitOnTheWay()
	w.CheckDivided(w.divide(1_000, 1))
	w.SendSignal(syscall.SIGCONT)
	w.AwaitAcknowledged(2)
	w.CheckDivided(second)
}

// CheckKills kills the agent at each point of a change of the rules. The next agent comes up with the old or the next
// split, and carries the next one out.
func CheckKills(t *testing.T, program Program) {
	program.build(t, "failpoints")
	for _, point := range agent.Points() {
		t.Run(string(point), func(t *testing.T) {
			armed := filepath.Join(t.TempDir(), "armed")
			w := begin(t, program, 5_000, "failpoints", "PLUMBLINE_AGENT_FAILPOINT="+string(point), "PLUMBLINE_AGENT_FAILPOINT_ARMED="+armed)
			if err := os.WriteFile(armed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			second := w.resalt(7_000, 2)
			w.Publish(second)
			w.AwaitEnd()
			if _, err := os.Stat(armed); err == nil {
				t.Fatal("the agent ended elsewhere")
			}
			w.StartProcess()
			w.AwaitAcknowledged(2)
			w.CheckDivided(second)
		})
	}
}

// CheckDamagedStore checks that a damaged store is ignored, and that a folder without room for a store costs no step.
func CheckDamagedStore(t *testing.T, program Program) {
	w := begin(t, program, 1_000, "")
	w.KillProcess()
	store := filepath.Join(w.Folder, "resources")
	text, err := os.ReadFile(store)
	if err == nil {
		err = os.WriteFile(store, []byte(strings.Replace(string(text), "shop", "shoq", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.StartProcess()
	w.AwaitAcknowledged(1)
	if err := os.Remove(store); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(store, 0o700); err != nil { // no file can be there
		t.Fatal(err)
	}
	second := w.divide(9_000, 2)
	w.Publish(second)
	w.AwaitAcknowledged(2)
	w.CheckDivided(second)
}

// CheckCounts checks that the server counts the requests of the clients, by the names of the slots.
func CheckCounts(t *testing.T, program Program) {
	w := begin(t, program, 3_000, "")
	served, c := map[string]int{}, edgetraffic.NewClient(t)
	for i := range 300 {
		got, err := c.Ask(t, http.MethodGet, w.Address, "x-user", fmt.Sprint("user-", i))
		if err != nil {
			t.Fatal(err)
		}
		served[got.Variation]++
	}
	w.AwaitCounts(served)
}

// CheckRamp checks a ramp of acknowledged steps under visitors that post through a path of 12 ms each way: no request
// is lost, no visitor is moved back, and the server counts the requests of the visitors.
func CheckRamp(t *testing.T, program Program) {
	w := begin(t, program, 0, "")
	c := edgetraffic.GatherCrowd(t, edgetraffic.StartDelay(t, w.Address, 12*time.Millisecond), 8, edgetraffic.OnlyToTheCanary)
	c.AwaitMore(8)
	for i, percent := range []traffic.Weight{1, 5, 25, 50, 100} {
		w.Publish(w.divide(percent*100, uint64(i+2))) //nolint:gosec // small
		w.AwaitAcknowledged(uint64(i + 2))            //nolint:gosec // small
		c.AwaitMore(40)
	}
	c.LoseNone()
	w.AwaitCounts(c.Served())
}
