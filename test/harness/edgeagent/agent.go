// SPDX-License-Identifier: Apache-2.0

package edgeagent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// Program is the program beside an agent.
type Program struct {
	// Kind is the value of --connector.
	Kind string
	// User is the name of the user's configuration. Configure writes its text: the program sends all requests to an
	// address to port 80 of Service shop/web. The folder is that of the agent.
	User      string
	Configure func(address, folder string) string
	// Flags are more flags of the agent, and Command is the program with its arguments.
	Flags, Command func(*Agent) []string
	// Rules is the name of the agent's file that divides requests.
	Rules string
	// Choose returns the variation that the program has for a visitor.
	Choose func(r *traffic.Routing, visitor string) string
	// Broken is text behind the user's configuration that the program refuses, and Refusal are words of that refusal.
	Broken, Refusal string
	// Reloads says that each split has another worker.
	Reloads bool
	// FindWorker returns the PID of a worker that accepts connections.
	FindWorker func(*Agent) (int, error)

	// binary of the agent, which several tests share; empty to build one.
	binary string
}

// build the agent for several tests.
func (p *Program) build(t *testing.T, tags string) {
	t.Helper()
	folder := t.TempDir()
	if err := server.BuildWithTags(t.Context(), folder, tags, "agent"); err != nil {
		t.Fatal(err)
	}
	p.binary = filepath.Join(folder, "agent")
}

// Agent is a process of cmd/agent, which starts a program.
type Agent struct {
	*Plane
	Program
	// Folder is the agent's, Address is that of the user's server, and Spare is another one that is free.
	Folder, Address, Spare string

	home      string
	cmd       *exec.Cmd
	variables []string
	ended     chan error
}

// StartAgent starts an agent with build tags, separated by commas, and variables of the environment. The agent is killed when the
// test ends.
func StartAgent(tb testing.TB, p *Plane, program Program, tags string, variables ...string) *Agent {
	tb.Helper()
	a := PrepareAgent(tb, p, program, tags, variables...)
	a.StartProcess()
	return a
}

// PrepareAgent writes all files of an agent, which StartProcess starts.
func PrepareAgent(tb testing.TB, p *Plane, program Program, tags string, variables ...string) *Agent {
	tb.Helper()
	home, err := os.MkdirTemp("", "edge") //nolint:usetesting // the path of a socket has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // workers are another user
		tb.Fatal(err)
	}
	a := &Agent{Plane: p, Program: program, Folder: filepath.Join(home, "state"), Address: freeport.Address(tb), Spare: freeport.Address(tb), home: home, variables: variables}
	if a.binary == "" {
		if err := server.BuildWithTags(tb.Context(), home, tags, "agent"); err != nil {
			tb.Fatal(err)
		}
		a.binary = a.Path("agent")
	}
	a.WriteUser("")
	a.WriteFile("token", "first")
	a.WriteFile("ca.crt", string(p.authority))
	return a
}

// Path is the path of a file beside the folder of the agent, such as the user's configuration.
func (a *Agent) Path(name string) string { return filepath.Join(a.home, name) }

// WriteFile writes a file beside the folder of the agent.
func (a *Agent) WriteFile(name, content string) {
	a.Helper()
	if err := os.WriteFile(a.Path(name), []byte(content), 0o600); err != nil {
		a.Fatal(err)
	}
}

// WriteUser writes the user's configuration, and text behind it.
func (a *Agent) WriteUser(more string) {
	a.Helper()
	a.WriteFile(a.User, a.Configure(a.Address, a.Folder)+more)
}

// StartProcess starts the process of the agent.
func (a *Agent) StartProcess() {
	a.Helper()
	arguments := append([]string{
		"run", "--connector=" + a.Kind, "--xds-servers=" + a.replicas[0].address + "," + a.replicas[1].address,
		"--token-file=" + a.Path("token"), "--ca-file=" + a.Path("ca.crt"), "--node=shop/edge-0", "--folder=" + a.Folder,
		"--metrics-address=" + freeport.Address(a), "--health-address=" + freeport.Address(a),
		"--log-format=text", "--flush-interval=1s", "--drain-delay=10ms",
	}, a.Flags(a)...)
	a.cmd = child.Bind(exec.Command(a.binary, append(append(arguments, "--"), a.Command(a)...)...)) //nolint:gosec,noctx // a test's own binary, which KillProcess ends
	a.cmd.Env = append(os.Environ(), a.variables...)
	a.cmd.Stdout, a.cmd.Stderr = a.Output(), a.Output()
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
	a.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(a.cmd, a.ended)
	a.Cleanup(a.KillProcess)
}

// AwaitEnd waits until the agent has ended, and the program has left its address.
func (a *Agent) AwaitEnd() {
	a.Helper()
	poll.Until(a, patience, "the agent has ended", func() error {
		select {
		case err := <-a.ended:
			a.ended <- err
			return nil
		default:
			return errors.New("it runs")
		}
	})
	poll.Until(a, patience, "the program has ended with the agent", func() error {
		l, err := net.Listen("tcp", a.Address) //nolint:noctx // closed at once
		if err == nil {
			err = l.Close()
		}
		return err
	})
}

// KillProcess kills the agent, and waits for the end of the agent and of the program.
func (a *Agent) KillProcess() {
	a.Helper()
	if a.cmd.Process.Kill() == nil {
		a.AwaitEnd()
	}
}

// SendSignal sends a signal to the agent.
func (a *Agent) SendSignal(s syscall.Signal) {
	a.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.Fatal(err)
	}
}

// Worker is the PID of a worker that accepts connections.
func (a *Agent) Worker() int {
	a.Helper()
	pid, err := a.FindWorker(a)
	if err != nil {
		a.Fatal(err)
	}
	return pid
}

// ReadRules returns the file of the agent that divides requests.
func (a *Agent) ReadRules() string {
	a.Helper()
	text, err := os.ReadFile(filepath.Join(a.Folder, a.Rules))
	if err != nil {
		a.Fatal(err)
	}
	return string(text)
}

// AwaitAnswer waits until the program answers at all.
func (a *Agent) AwaitAnswer() {
	a.Helper()
	poll.Until(a, patience, "the program answers", func() error {
		c := edgetraffic.NewClient(a)
		defer c.CloseIdleConnections()
		_, err := c.Ask(a, http.MethodGet, a.Address, "x-user", "user-1")
		return err
	})
}

// CheckDivided asks for some visitors, each of which has to have the variation of a split. The connection ends, since
// a kept connection delays the proof of a reload.
func (a *Agent) CheckDivided(s ir.Service) {
	a.Helper()
	c := edgetraffic.NewClient(a)
	defer c.CloseIdleConnections()
	for i := range 40 {
		user := fmt.Sprint("user-", i)
		got, err := c.Ask(a, http.MethodGet, a.Address, "x-user", user)
		if err != nil {
			a.Fatal(err)
		}
		if want := a.Choose(s.Routing, user); got.Variation != want {
			a.Fatalf("%s is answered %d by %q, want %s", user, got.Status, got.Variation, want)
		}
	}
}
