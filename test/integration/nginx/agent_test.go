// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/edgeagent"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/nginx"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// program is an nginx, whose master the agent starts.
var program = edgeagent.Program{
	Kind: "nginx", User: "nginx.conf", Rules: connector.ConfigFile, Choose: arm, Reloads: true,
	Configure: func(address, folder string) string { return configure(filepath.Dir(folder), folder, address, "") },
	Flags: func(a *edgeagent.Agent) []string {
		return []string{"--keepalive-min=" + keepaliveMin.String(), "--log-address=" + a.Spare}
	},
	Command: command,
	Broken:  "nonsense on;\n", Refusal: `unknown directive "nonsense" in `,
	FindWorker: func(a *edgeagent.Agent) (int, error) {
		master, err := findMaster(a)
		if err != nil {
			return 0, err
		}
		return findWorker(master)
	},
}

func command(a *edgeagent.Agent) []string {
	return []string{nginx.Binary(a), "-p", filepath.Dir(a.Folder), "-e", "stderr", "-c", a.Path("nginx.conf")}
}

func findMaster(a *edgeagent.Agent) (int, error) { return carry.ReadPID(a.Path("nginx.pid")) }

func TestAnAgentAcknowledgesStepsThatAreProven(t *testing.T) { edgeagent.CheckProvenSteps(t, program) }

func TestAnAgentHoldsWhileReplicasAreAway(t *testing.T) { edgeagent.CheckHolding(t, program) }

func TestAnAgentRefusesInTheWordsOfNginx(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckRefusal(t, program)
}

func TestAnAgentNamesTheWorkerThatIsLate(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckLateWorker(t, program)
}

func TestAnAgentThatIsStoppedAcknowledgesNothing(t *testing.T) {
	edgeagent.CheckStoppedAgent(t, program)
}

func TestAnAgentThatIsKilledCarriesOn(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckKills(t, program)
}

func TestAnAgentWithoutAStoreFollows(t *testing.T) {
	rotation.Share(t, 3)
	edgeagent.CheckDamagedStore(t, program)
}

func TestCountsOfAnAgentAreThoseOfTheClients(t *testing.T) { edgeagent.CheckCounts(t, program) }

func TestAnAgentRampsWithoutALoss(t *testing.T) { edgeagent.CheckRamp(t, program) }

func TestTheGuideOfNginx(t *testing.T) {
	edgeagent.CheckGuide(t, program, func(configuration, address, folder string) string {
		return strings.NewReplacer("/var/lib/plumbline", folder, "/run/nginx", filepath.Dir(folder), "listen 8080", "listen "+address).Replace(configuration)
	})
}

// A master that is stopped loads no files: the server shows why the split is not proven, the files are those of
// before, and the split is proven once the master goes on.
func TestAnAgentWhoseReloadHangs(t *testing.T) {
	rotation.Share(t, 3)
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	p := edgeagent.NewPlane(t)
	first, second := portset.Divide(portset.ByHeader, 1_000, 1, stableAt, canaryAt), portset.Divide(portset.ByHeader, 9_000, 2, stableAt, canaryAt)
	p.Publish(first)
	a := edgeagent.StartAgent(t, p, program, "")
	a.AwaitAcknowledged(1)
	before := a.ReadRules()
	master, err := findMaster(a)
	must(t, err)
	must(t, syscall.Kill(master, syscall.SIGSTOP))
	p.Publish(second)
	a.AwaitRefusal("reloading nginx: no worker has the files")
	a.CheckDivided(first)
	if rules := a.ReadRules(); rules != before && !strings.Contains(rules, ".2;") {
		t.Errorf("the rules are neither those of before nor the next ones:\n%s", rules)
	}
	must(t, syscall.Kill(master, syscall.SIGCONT))
	a.AwaitAcknowledged(2)
	a.CheckDivided(second)
}

// An nginx that a person kills ends its agent and its workers, so that the next nginx has the port.
func TestAnAgentEndsWithAnNginxThatIsKilled(t *testing.T) {
	p := edgeagent.NewPlane(t)
	s := portset.Divide(portset.ByHeader, 1_000, 1, edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0))
	p.Publish(s)
	a := edgeagent.StartAgent(t, p, program, "")
	a.AwaitAcknowledged(1)
	master, err := findMaster(a)
	must(t, err)
	must(t, syscall.Kill(master, syscall.SIGKILL))
	a.AwaitEnd()
	a.StartProcess()
	a.AwaitAnswer()
	a.CheckDivided(s)
}

// A WebSocket holds a worker of before, and delays no acknowledgment.
func TestAnAgentAcknowledgesBesideAWebSocket(t *testing.T) {
	echoAt, canaryAt := edgetraffic.StartEcho(t), edgetraffic.StartUpstream(t, "canary", 0)
	p := edgeagent.NewPlane(t)
	p.Publish(portset.Divide(portset.ByHeader, 0, 1, echoAt, canaryAt))
	a := edgeagent.StartAgent(t, p, program, "")
	a.AwaitAcknowledged(1)
	socket := edgetraffic.OpenWebSocket(t, a.Address)
	socket.EchoText("before")
	worker := a.Worker()
	for i := range 2 {
		p.Publish(portset.Divide(portset.ByHeader, traffic.Total, uint64(i+2), echoAt, canaryAt)) //nolint:gosec // small
		a.AwaitAcknowledged(uint64(i + 2))                                                        //nolint:gosec // small
		socket.EchoText(fmt.Sprint("after step ", i))
	}
	if a.Worker() == worker {
		t.Error("the steps started no worker")
	}
}

// An agent beside an nginx that runs by itself finds the nginx by its PID file, and signals no other program that has
// the PID of a file that is stale.
func TestAnAttachedAgentSignalsNoOtherProgram(t *testing.T) {
	p := edgeagent.NewPlane(t)
	s := portset.Divide(portset.ByHeader, 1_000, 1, edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0))
	p.Publish(s)
	attached := program
	attached.Flags = func(a *edgeagent.Agent) []string {
		return append(program.Flags(a), "--attach", "--pid-file="+a.Path("nginx.pid"))
	}
	a := edgeagent.PrepareAgent(t, p, attached, "")
	other := child.Bind(exec.CommandContext(t.Context(), "sleep", "600"))
	must(t, other.Start())
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	a.WriteFile("nginx.pid", fmt.Sprintln(other.Process.Pid))
	a.StartProcess()
	poll.Until(t, patience, "the agent has written the files", func() error {
		_, err := os.Stat(filepath.Join(a.Folder, connector.ConfigFile))
		return err
	})
	a.AwaitOnTheWay()
	select {
	case err := <-ended:
		t.Fatalf("the other program has ended: %v", err)
	case <-time.After(time.Second):
	}
	nginx.Start(t, a.Path("nginx.conf"))
	a.AwaitAcknowledged(1)
	a.CheckDivided(s)
	must(t, other.Process.Kill())
	if err := <-ended; err == nil || errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the other program was not there: %v", err)
	}
	second := s
	second.Sequence = 2
	p.Publish(second)
	a.AwaitAcknowledged(2)
}

// hosts sends the requests of three Services to their variables.
func hosts(address, folder string) string {
	var servers strings.Builder
	for host, variable := range map[string]string{"web.shop": "plb_shop_web", "pay.shop": "plb_shop_pay", "web.bank": "plb_bank_web"} {
		fmt.Fprintf(&servers, `
server {
  listen %s;
  server_name %s;
  location / {
    proxy_pass http://$%s;
    proxy_set_header Host $host;
  }
}`, address, host, variable)
	}
	return configure(filepath.Dir(folder), folder, "", servers.String())
}

func TestAgentsOfNginxKeepTheContractOfRouters(t *testing.T) {
	rotation.Share(t, 6)
	edgeagent.Conform(t, program, hosts)
}
