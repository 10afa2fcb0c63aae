// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds every wait.
const patience = 20 * time.Second

func TestAProgramEndsWithItsAgentInWhateverMomentThatIs(t *testing.T) {
	for range 50 {
		ctx, end := context.WithCancel(t.Context())
		c := NewChild([]string{"sleep", "600"}, HAProxySignals)
		c.Start()
		go end()
		if err := c.Run(ctx, nil, 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if c.cmd.Process != nil && c.cmd.ProcessState == nil {
			t.Fatal("the program goes on without its agent")
		}
	}
}

func TestAProgramThatEndsOrCannotStartEndsTheAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		command []string
		want    error
	}{
		"it ends well":    {[]string{"true"}, errEnded},
		"it does not run": {[]string{t.TempDir() + "/none"}, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewChild(tc.command, HAProxySignals)
			c.Start()
			if err := c.Run(t.Context(), nil, time.Second); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
	t.Run("it fails", func(t *testing.T) {
		c := NewChild([]string{"false"}, HAProxySignals)
		c.Start()
		if _, is := errors.AsType[*exec.ExitError](c.Run(t.Context(), nil, time.Second)); !is {
			t.Error("the exit code is lost")
		}
	})
}

// A master of nginx that was killed leaves workers, which hold its ports.
func TestWorkersEndWithAProgramThatWasKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	c := NewChild([]string{"sh", "-c", "sleep 600 & echo $! > " + file + ".new; mv " + file + ".new " + file + "; wait"}, NGINXSignals)
	if _, err := c.PID(); !errors.Is(err, errNotStarted) {
		t.Errorf("before the start: %v", err)
	}
	c.Start()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context(), nil, time.Second) }()
	worker := 0
	poll.Until(t, patience, "the program has a worker", func() error {
		text, err := os.ReadFile(file)
		if err == nil {
			worker, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	pid, err := c.PID()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errEnded) {
		t.Errorf("the agent goes on: %v", err)
	}
	poll.Until(t, patience, "the worker has ended", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("process %d goes on", worker)
		}
		return nil
	})
}
