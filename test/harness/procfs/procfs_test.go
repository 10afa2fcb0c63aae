// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

func TestALineOfAProcessIsRead(t *testing.T) {
	tests := map[string]struct {
		line string
		want Stat
		bad  bool
	}{
		"a program": {line: "7 (sh) S 3 7 7 0 -1 0 0 0 0 0 120 30 0 0 20 0 1 0", want: Stat{"sh", "S", 3, 1500 * time.Millisecond}},
		"a name with spaces and parentheses": {
			line: "7 (a) b (c) R 3 7 7 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0", want: Stat{"a) b (c", "R", 3, 10 * time.Millisecond},
		},
		"a line that was cut":   {line: "7 (sh) S 3", bad: true},
		"a line without a name": {line: "7 sh S 3", bad: true},
		"no number":             {line: "7 (sh) S x 7 7 0 -1 0 0 0 0 0 1 0 0 0", bad: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(tc.line))
			if (err != nil) != tc.bad {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAChildIsFoundByItsName(t *testing.T) {
	program := child.Bind(exec.CommandContext(t.Context(), "cat")) // until its input ends
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = input.Close(), program.Wait() }() // the test is not about its end
	if pid, err := FindChild("cat"); err != nil || pid != program.Process.Pid {
		t.Errorf("found %d (%v), want %d", pid, err, program.Process.Pid)
	}
	if stat, err := ReadStat(program.Process.Pid); err != nil || stat.Parent != os.Getpid() {
		t.Errorf("%+v: %v", stat, err)
	}
	if _, err := FindChild("missing"); err == nil {
		t.Error("a child is found that was never started")
	}
}
