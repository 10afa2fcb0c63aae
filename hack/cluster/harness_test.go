// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/lifecycle"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/preflight"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// asProgram makes this test binary behave as the cluster program, so that the
// tests drive real processes, as a user does, without compiling a second binary.
const asProgram = "PLUMBLINE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	hidden := len(os.Args) == 2 && (os.Args[1] == sandbox.InitCommand || os.Args[1] == preflight.ProbeCommand)
	if hidden || os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program runs the cluster program on a state folder of its own.
type program struct {
	t     *testing.T
	state string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("not root: a cluster needs namespaces, mounts and network links")
	}
	// Not t.TempDir: its path, which contains the test's name, is too long for
	// the Unix sockets of a cluster.
	state, err := os.MkdirTemp("/var/tmp", "plc") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, state: state}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	t.Cleanup(p.downAll) // runs first
	return p
}

// downAll takes away what a failed test has left, so that it cannot disturb the
// next one.
func (p *program) downAll() {
	records, err := filepath.Glob(filepath.Join(p.state, "*", "cluster.json"))
	if err != nil {
		p.t.Error(err)
	}
	for _, record := range records {
		command := p.command(context.Background(), "down", "--name", filepath.Base(filepath.Dir(record)))
		if output, err := command.CombinedOutput(); err != nil {
			p.t.Errorf("cleaning up: %v: %s", err, output)
		}
	}
}

func (p *program) command(ctx context.Context, arguments ...string) *exec.Cmd {
	executable, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	command := exec.CommandContext(ctx, executable, append([]string{"--state", p.state}, arguments...)...)
	command.Env = append(os.Environ(), asProgram+"=1", "PLUMBLINE_OWNER="+strconv.Itoa(os.Getpid()))
	return command
}

// run executes one command line that must succeed, and returns standard output.
func (p *program) run(arguments ...string) string {
	p.t.Helper()
	out, errOut, err := p.try(arguments...)
	if err != nil {
		p.t.Fatalf("cluster %v: %v\n%s", arguments, err, errOut)
	}
	return out
}

func (p *program) try(arguments ...string) (out, errOut string, err error) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	command := p.command(p.t.Context(), arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	begin := time.Now()
	err = command.Run()
	p.t.Logf("cluster %v took %s", arguments, time.Since(begin).Round(time.Millisecond))
	return stdout.String(), stderr.String(), err
}

// interruptAt starts the command, sends the signal when a line of its progress
// contains mark, and returns its exit status, -1 when it was killed, and the
// footprint that the cluster had at that moment.
func (p *program) interruptAt(mark string, signal syscall.Signal, name string) (int, footprint) {
	p.t.Helper()
	command := p.command(p.t.Context(), "up", "--name", name)
	progress, err := command.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	var had footprint
	seen := false
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if !seen && strings.Contains(lines.Text(), mark) {
			seen, had = true, p.footprintOf(name)
			if err := command.Process.Signal(signal); err != nil {
				p.t.Error(err)
			}
		}
	}
	_ = command.Wait() // its status is looked at by the caller
	if !seen {
		p.t.Fatalf("up never printed %q", mark)
	}
	return command.ProcessState.ExitCode(), had
}

func (p *program) record(name string) lifecycle.Record {
	p.t.Helper()
	record, err := lifecycle.Manager{State: p.state, Progress: io.Discard}.Read(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return record
}

// kubectl runs kubectl on the named cluster.
func (p *program) kubectl(name, stdin string, arguments ...string) (string, error) {
	record := p.record(name)
	command := exec.CommandContext(p.t.Context(), record.Program("kubectl"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+record.Layout().Kubeconfig())
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (p *program) mustKubectl(name, stdin string, arguments ...string) string {
	p.t.Helper()
	output, err := p.kubectl(name, stdin, arguments...)
	if err != nil {
		p.t.Fatalf("kubectl %v on %s: %v\n%s", arguments, name, err, output)
	}
	return strings.TrimSpace(output)
}

// patience is how long the tests wait for anything.
const patience = time.Minute

// eventually polls the condition until it holds.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	deadline, ticker := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited %s until %s; last seen: %v", patience, what, err)
		case <-ticker.C:
		}
	}
}

// daemon finds the process of the named daemon of a cluster.
func daemon(t *testing.T, record lifecycle.Record, name string) int {
	t.Helper()
	namespace := holdProcesses(t, record.Pid)
	for _, pid := range processesBelow(t, namespace) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(line), record.Program(name)+"\x00") {
			return pid
		}
	}
	t.Fatalf("no process %s", name)
	return 0
}

// footprint is what one cluster has on the host while it runs. Other clusters may
// come and go on this machine meanwhile, so each item must name its owner.
type footprint struct {
	name      string
	root      string
	namespace *os.File // of its processes
	link      string
	linkIndex string // tells this link from a later one of the same name
	cgroup    string
}

// footprintOf reads the footprint of a cluster that is running or starting.
func (p *program) footprintOf(name string) footprint {
	p.t.Helper()
	record := p.record(name)
	link := record.Network.Link()
	index, err := os.ReadFile(linkFile(link))
	if err != nil {
		p.t.Fatal(err)
	}
	groups := cgroupsOf(p.t, record.Cgroup)
	if len(groups) == 0 {
		p.t.Fatalf("cluster %s has no control group", name)
	}
	weights := slices.Concat(contentsOf(p.t, groups, "cpu.shares"), contentsOf(p.t, groups, "cpu.weight"))
	if len(weights) != 1 || weights[0] != "4096" && weights[0] != "400" {
		p.t.Errorf("cluster %s has the processor weights %v, want one of four times the default", name, weights)
	}
	return footprint{
		name: name, root: record.Root, link: link, linkIndex: string(index), cgroup: record.Cgroup,
		namespace: holdProcesses(p.t, record.Pid),
	}
}

func linkFile(link string) string { return filepath.Join("/sys/class/net", link, "ifindex") }

func cgroupsOf(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		groups, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	return found
}

// contentsOf reads a file in each control group that has the file.
func contentsOf(t *testing.T, groups []string, name string) []string {
	t.Helper()
	var found []string
	for _, group := range groups {
		content, err := os.ReadFile(filepath.Join(group, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, strings.TrimSpace(string(content)))
	}
	return found
}

// assertGone checks that nothing of the footprint is left.
func (f footprint) assertGone(t *testing.T) {
	t.Helper()
	if err := f.ended(t); err != nil {
		t.Error(err)
	}
	f.assertCleaned(t)
}

// ended is an error while a process of the cluster lives, in a pod or beside the pods.
func (f footprint) ended(t *testing.T) error {
	t.Helper()
	if left := processesBelow(t, f.namespace); len(left) > 0 {
		return fmt.Errorf("cluster %s left processes %v", f.name, left)
	}
	return nil
}

// assertCleaned checks that a cluster without processes left nothing else either.
func (f footprint) assertCleaned(t *testing.T) {
	t.Helper()
	// Routes hang on the link and cannot outlive it.
	if index, err := os.ReadFile(linkFile(f.link)); err == nil && string(index) == f.linkIndex {
		t.Errorf("cluster %s left the link %s", f.name, f.link)
	}
	if left := cgroupsOf(t, f.cgroup); len(left) > 0 {
		t.Errorf("cluster %s left control groups %v", f.name, left)
	}
	for _, mount := range lines(t, "cat", "/proc/self/mounts") {
		if strings.Contains(mount, f.root) {
			t.Errorf("cluster %s left a mount: %s", f.name, mount)
		}
	}
	if _, err := os.Stat(f.root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("cluster %s left state in %s (%v)", f.name, f.root, err)
	}
}

// machine is what clusters must not change on the host at all.
type machine struct{ Rules, Settings []string }

// machineNow reads the packet filter rules that clusters make inside, where they
// belong, and the settings that a kubelet changes when it can.
func machineNow(t *testing.T) machine {
	t.Helper()
	var now machine
	for _, command := range []string{"iptables-save", "ip6tables-save"} {
		for _, rule := range lines(t, command) {
			if strings.Contains(rule, "KUBE-") || strings.Contains(rule, "CNI-") {
				now.Rules = append(now.Rules, rule)
			}
		}
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			value = []byte(err.Error())
		}
		now.Settings = append(now.Settings, name+" = "+strings.TrimSpace(string(value)))
	}
	return now
}

func (m machine) assertUnchanged(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(m, machineNow(t)); diff != "" {
		t.Errorf("the machine differs from before (-before +after):\n%s", diff)
	}
}

func (p *program) assertNoState() {
	p.t.Helper()
	entries, err := os.ReadDir(p.state)
	if err != nil || len(entries) > 0 {
		p.t.Errorf("state left: %v (%v)", entries, err)
	}
}

func lines(t *testing.T, name string, arguments ...string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), name, arguments...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, arguments, err)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

// decode reads JSON that a test expects to be well formed.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("decoding %q: %v", text, err)
	}
}
