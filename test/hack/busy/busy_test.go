// SPDX-License-Identifier: Apache-2.0

package busy

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit bounds every wait.
const limit = 20 * time.Second

func script(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return child.Bind(exec.CommandContext(t.Context(), "../../../hack/busy.sh", args...))
}

func TestTheCommandIsRunAsWithoutTheScript(t *testing.T) {
	type outcome struct {
		Out, Err string
		Code     int
	}
	for name, tc := range map[string]struct {
		args []string
		want outcome
	}{
		"input, both outputs and exit code": {
			[]string{"1", "sh", "-c", "read line; echo \"$line $1\"; echo trouble >&2; exit 7", "sh", "a  b"},
			outcome{"said a  b\n", "trouble\n", 7},
		},
		"a command that succeeds": {[]string{"0", "true"}, outcome{}},
		"no command":              {[]string{"1"}, outcome{"", "usage: ../../../hack/busy.sh N COMMAND...\n", 2}},
		"no number":               {[]string{"x", "true"}, outcome{"", "usage: ../../../hack/busy.sh N COMMAND...\n", 2}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := script(t, tc.args...)
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("said\n"), &out, &errs
			_ = cmd.Run() // the exit code is compared
			if diff := cmp.Diff(tc.want, outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// running lists the children of a process that run.
func running(t *testing.T, of int) (pids []string) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", of))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// ended says whether a process runs no more.
func ended(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

func TestTheLoopsEndWithTheScript(t *testing.T) {
	for name, tc := range map[string]struct {
		signal syscall.Signal
		code   int // -1: by a signal
	}{
		"it is asked to end":         {syscall.SIGTERM, 9},
		"it is killed":               {syscall.SIGKILL, -1},
		"the command ends by itself": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := script(t, "2", "sh", "-c", "trap 'exit 9' TERM; echo started; read line")
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
				t.Fatalf("it said %q: %v", line, err)
			}
			loops := running(t, cmd.Process.Pid)
			if len(loops) != 3 {
				t.Fatalf("it has the children %v, want two loops and the command", loops)
			}
			if tc.signal == 0 {
				_, err = input.Write([]byte("\n"))
			} else {
				err = cmd.Process.Signal(tc.signal)
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.signal == syscall.SIGKILL {
				_ = input.Close() // the command ends with its input
			}
			_ = cmd.Wait() // the exit code is compared
			if got := cmd.ProcessState.ExitCode(); got != tc.code {
				t.Errorf("it ends with %d, want %d", got, tc.code)
			}
			for _, pid := range loops {
				poll.True(t, limit, "process "+pid+" has ended", func() bool { return ended(pid) })
			}
		})
	}
}
