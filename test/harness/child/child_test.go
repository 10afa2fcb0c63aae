// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit bounds every wait.
const limit = 20 * time.Second

// asParent names the environment variable that makes this program a process with a
// child: the program of the child.
const asParent = "PLUMBLINE_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if program := os.Getenv(asParent); program != "" {
		if err := beParent(program); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // it is killed before
	}
	os.Exit(m.Run())
}

// beParent starts a child from a goroutine that ends, prints the number of the child,
// and waits.
func beParent(program string) error {
	cmd, started := child.Bind(exec.Command(program, "3600")), make(chan error)
	if strings.HasSuffix(filepath.Dir(program), "wrapped") {
		cmd.SysProcAttr.Pdeathsig = 0 // a library starts the script and binds nothing
	}
	go func() { started <- cmd.Start() }()
	if err := <-started; err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return cmd.Wait()
}

// ended says whether a process runs no more. One that has ended may be there until its
// new parent asks how.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

func TestAChildEndsWithAProcessThatIsKilled(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil {
		t.Fatal(err)
	}
	wrapped, err := child.Wrap(filepath.Join(t.TempDir(), "a 'folder'", "wrapped"), sleep)
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"a program": sleep, "a program in a script": wrapped} {
		t.Run(name, func(t *testing.T) {
			parent := child.Bind(exec.CommandContext(t.Context(), os.Args[0]))
			parent.Env = append(os.Environ(), asParent+"="+program)
			parent.Stderr = os.Stderr
			output, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			poll.Until(t, limit, "the child is the program itself", func() error {
				is, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
				if err == nil && is != sleep {
					err = fmt.Errorf("it is %s", is)
				}
				return err
			})
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // that it was killed
			poll.True(t, limit, "the child has ended", func() bool { return ended(pid) })
		})
	}
}

// The kernel kills a child when the thread ends that started the child.
func TestAChildOutlivesTheGoroutineThatStartedIt(t *testing.T) {
	var pids sync.Map
	var starters sync.WaitGroup
	for range 8 {
		starters.Go(func() {
			cmd := child.Bind(exec.Command("sleep", "3600"))
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // that it was killed
			})
			pids.Store(cmd.Process.Pid, true)
		})
	}
	starters.Wait()
	// Many threads come, and their goroutines end.
	var crowd sync.WaitGroup
	for range 64 {
		crowd.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := syscall.Nanosleep(&syscall.Timespec{Nsec: 1_000_000}, nil); err != nil && err != syscall.EINTR {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	runtime.GC()
	pids.Range(func(pid, _ any) bool {
		if ended(pid.(int)) {
			t.Errorf("the child %d has ended", pid)
		}
		return true
	})
}

func TestBindKeepsTheOtherAttributes(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	want := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if diff := cmp.Diff(want, child.Bind(cmd).SysProcAttr); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAScriptPassesItsArgumentsOn(t *testing.T) {
	printf, err := exec.LookPath("printf")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for range 2 { // the second time it is there
		script, err := child.Wrap(folder, printf)
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.Bind(exec.CommandContext(t.Context(), script, "%s|", "--a", "b c", "$d")).Output()
		if err != nil || string(out) != "--a|b c|$d|" {
			t.Errorf("%q, %v", out, err)
		}
	}
}

func TestWithoutSetprivTheErrorNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := child.Wrap(t.TempDir(), "/bin/true"); err == nil || !strings.Contains(err.Error(), "util-linux") {
		t.Errorf("got %v", err)
	}
}
