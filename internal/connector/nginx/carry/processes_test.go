// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
)

func TestStatIsRead(t *testing.T) {
	const rest = " 7 10 10 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 100 1"
	for name, tc := range map[string]struct {
		stat string
		want process
		bad  bool
	}{
		"one that runs":             {"10 (nginx) S" + rest, process{Worker: nginx.Worker{PID: 10, Started: 12345}, parent: 7}, false},
		"one that is stopped":       {"10 (nginx) T" + rest, process{Worker: nginx.Worker{PID: 10, Started: 12345}, parent: 7, stopped: true}, false},
		"a name with a parenthesis": {"10 (a) T 1 2) S" + rest, process{Worker: nginx.Worker{PID: 10, Started: 12345}, parent: 7}, false},
		"half a line":               {"10 (nginx) S 7", process{}, true},
		"a parent of words":         {"10 (nginx) S" + strings.Replace(rest, " 7", " x", 1), process{}, true},
		"a start of words":          {"10 (nginx) S" + strings.Replace(rest, "12345", "x", 1), process{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(10, tc.stat)
			if got != tc.want || (err != nil) != tc.bad {
				t.Errorf("read %+v (%v), want %+v", got, err, tc.want)
			}
		})
	}
}

// The PID of a program that has ended may be that of another one.
func TestAStalePIDFileIsNoNginx(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nginx.pid")
	for name, content := range map[string]string{"this test": fmt.Sprint(os.Getpid()), "no process": "0", "no number": "x", "empty": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		pid, err := ReadPID(file)
		if err == nil {
			_, err = Workers(pid)
		}
		if err == nil {
			t.Errorf("%s is the nginx %d", name, pid)
		}
	}
}
