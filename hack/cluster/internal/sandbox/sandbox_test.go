// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hierarchy(t *testing.T, folders ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range folders {
		path := filepath.Join(root, folder)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "cgroup.procs"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSetWeightWritesWhereThereIsAProcessorController(t *testing.T) {
	cases := map[string]struct{ files, want map[string]string }{
		"version 1":               {map[string]string{"cpu.shares": "1024"}, map[string]string{"cpu.shares": "4096"}},
		"version 2":               {map[string]string{"cpu.weight": "100"}, map[string]string{"cpu.weight": "400"}},
		"a hierarchy without one": {map[string]string{"memory.limit": "1"}, map[string]string{"memory.limit": "1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := t.TempDir()
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(group, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := setWeight(group); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			entries, err := os.ReadDir(group)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				content, err := os.ReadFile(filepath.Join(group, entry.Name()))
				if err != nil {
					t.Fatal(err)
				}
				got[entry.Name()] = string(content)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCgroupHierarchies(t *testing.T) {
	cases := map[string]struct{ folders, want []string }{
		"version 2 is one":                     {[]string{"."}, []string{"."}},
		"version 2 does not descend":           {[]string{".", "system.slice"}, []string{"."}},
		"version 1 has one per controller":     {[]string{"cpu,cpuacct", "memory"}, []string{"cpu,cpuacct", "memory"}},
		"a hybrid has its version 2 beside it": {[]string{"memory", "unified"}, []string{"memory", "unified"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mount := hierarchy(t, tc.folders...)
			if err := os.Symlink("cpu,cpuacct", filepath.Join(mount, "cpu")); err != nil {
				t.Fatal(err)
			}
			got, err := CgroupHierarchies(mount)
			if err != nil {
				t.Fatal(err)
			}
			for i, root := range got {
				if got[i], err = filepath.Rel(mount, root); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemoveCgroupRefusesWhatIsNotOurs(t *testing.T) {
	for _, name := range []string{"", ".", "/", "system.slice", "plumbline-x/../../memory", "../plumbline-x"} {
		if err := RemoveCgroup(t.Context(), name); err == nil || !strings.Contains(err.Error(), "refusing") {
			t.Errorf("RemoveCgroup(%q) = %v", name, err)
		}
	}
	if err := RemoveCgroup(t.Context(), plan.CgroupPrefix+"never-was-here"); err != nil {
		t.Errorf("a group that does not exist: %v", err)
	}
}

func TestRemoveFoldersTakesChildrenFirst(t *testing.T) {
	root := filepath.Join(t.TempDir(), "group")
	if err := os.MkdirAll(filepath.Join(root, "kubepods", "burstable", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := removeTree(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("still there (%v)", err)
		}
	}
}

// A folder with a file in it fails like a control group with a process: ENOTEMPTY.
func TestRemoveTreeWaitsForABusyGroupAndGivesUpWithItsContext(t *testing.T) {
	root := hierarchy(t, "busy")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := removeTree(ctx, root); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- removeTree(t.Context(), root) }()
	if err := os.Remove(filepath.Join(root, "busy", "cgroup.procs")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after it became free: %v", err)
	}
}

func TestAliveFollowsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	check := func(when string, want bool) {
		t.Helper()
		if got, err := Alive(path); err != nil || got != want {
			t.Errorf("%s: Alive = %v, %v; want %v", when, got, err, want)
		}
	}
	check("before it was ever up", false)
	lock, err := holdLock(path)
	if err != nil {
		t.Fatal(err)
	}
	check("while it lives", true)
	check("when asked again", true)
	if _, err := holdLock(path); err == nil {
		t.Error("two first processes hold one lock")
	}
	if err := lock.Close(); err != nil { // as the kernel does when the process ends
		t.Fatal(err)
	}
	check("after it has ended, with the file still there", false)
}

func TestKillEndsAProcessAndReturnsWhenItHasEnded(t *testing.T) {
	command := exec.Command("sleep", "3600") // no context: nobody calls Wait
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Kill(t.Context(), command.Process.Pid); err != nil {
		t.Fatal(err)
	}
	// It has ended, so it is a zombie now, and waiting for it does not block.
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(command.Process.Pid, &status, syscall.WNOHANG, nil)
	if err != nil || pid != command.Process.Pid || status.Signal() != syscall.SIGKILL {
		t.Errorf("Wait4 = %d, %v, %v", pid, status, err)
	}
	if err := Kill(t.Context(), command.Process.Pid); err != nil {
		t.Errorf("killing it again: %v", err)
	}
}

// TestDaemonLife drives the first process's half of the protocol in this process:
// start, output to the log, exit noted for the launcher and for later.
func TestDaemonLife(t *testing.T) {
	folder := t.TempDir()
	var reports bytes.Buffer
	first := &firstProcess{exits: folder, reports: json.NewEncoder(&reports), daemons: map[int]string{}}
	children := make(chan os.Signal, 8)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)

	daemon := plan.Process{
		Name: "worker", Path: "/bin/sh", Args: []string{"-c", "echo $GREETING; echo trouble >&2; exit 7"},
		Env: []string{"GREETING=hello"}, Log: filepath.Join(folder, "worker.log"),
	}
	if err := first.carryOut(order{Start: &daemon}); err != nil {
		t.Fatal(err)
	}
	const limit = 30 * time.Second
	deadline := time.After(limit)
	for len(first.daemons) > 0 {
		if first.reapOne() {
			continue
		}
		select {
		case <-children:
		case <-deadline:
			t.Fatalf("waited %s until the daemon's end is noticed; last seen: processes %v, reports %q", limit, first.daemons, reports.String())
		}
	}
	if log, err := os.ReadFile(daemon.Log); err != nil || string(log) != "hello\ntrouble\n" {
		t.Errorf("log %q (%v)", log, err)
	}
	if exit, err := os.ReadFile(filepath.Join(folder, "worker")); err != nil || string(exit) != "exited with status 7\n" {
		t.Errorf("exit file %q (%v)", exit, err)
	}
	var got report
	if err := json.Unmarshal(reports.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report{Exited: "worker", Status: "exited with status 7"}, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestOrdersThatCannotBeCarriedOut(t *testing.T) {
	first := &firstProcess{daemons: map[int]string{}}
	log := filepath.Join(t.TempDir(), "log")
	cases := map[string]struct {
		order order
		want  string
	}{
		"an order without content":      {order{}, "without content"},
		"a program that does not exist": {order{Start: &plan.Process{Name: "x", Path: "/nonexistent", Log: log}}, "starting /nonexistent"},
		"a log that cannot be written":  {order{Start: &plan.Process{Name: "x", Path: "/bin/true", Log: "/nonexistent/log"}}, "opening the log of x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := first.carryOut(tc.order); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if len(first.daemons) > 0 {
		t.Errorf("daemons noted that never started: %v", first.daemons)
	}
}

func TestDescribe(t *testing.T) {
	cases := map[string]struct {
		status syscall.WaitStatus
		want   string
	}{
		"a status":     {3 << 8, "exited with status 3"},
		"a clean exit": {0, "exited with status 0"},
		"a signal":     {syscall.WaitStatus(syscall.SIGKILL), "killed by killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := describe(tc.status); got != tc.want {
				t.Errorf("describe = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInitRefusesToRunOnTheHost(t *testing.T) {
	if err := Init(strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "cluster up") {
		t.Errorf("Init = %v", err)
	}
}

func TestInPrivateFolder(t *testing.T) {
	for path, want := range map[string]bool{
		"/run/systemd/resolve/stub-resolv.conf": true, "/run": true, "/runner/x": false, "/etc/hosts": false, "/var/log/x": true, "/var/login": false,
	} {
		if got := inPrivateFolder(path); got != want {
			t.Errorf("inPrivateFolder(%q) = %v", path, got)
		}
	}
}
