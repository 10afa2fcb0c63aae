// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestTablesHaveColorsOnATerminalAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		color bool
		want  string
	}{
		"a terminal": {true, "STATE     NAME\n\x1b[31mDrifted\x1b[0m   a\n\x1b[32mInSync\x1b[0m    b\n"},
		"a file":     {false, "STATE     NAME\nDrifted   a\nInSync    b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			inv := &Invocation{IOStreams: genericiooptions.IOStreams{Out: &out}, AllowsColor: func() bool { return tc.color }}
			if err := inv.PrintTable(TableOptions{}, []Column{{Name: "State"}, {Name: "Name"}}, [][]any{{"Drifted", "a"}, {"InSync", "b"}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoColorSwitchesColorsOff(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("the system has no terminals: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("TERM", "xterm")
	for _, tc := range []struct {
		noColor bool
		want    string
	}{{false, "\x1b[31mCritical\x1b[0m"}, {true, "Critical"}} {
		if t.Setenv("NO_COLOR", "1"); !tc.noColor {
			if err := os.Unsetenv("NO_COLOR"); err != nil {
				t.Fatal(err)
			}
		}
		if got := New(Environment{Out: terminal}).Paint("Critical"); got != tc.want {
			t.Errorf("NO_COLOR set: %v: got %q, want %q", tc.noColor, got, tc.want)
		}
	}
}
