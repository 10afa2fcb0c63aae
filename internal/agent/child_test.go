// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestAProgramEndsWithItsAgentInWhateverMomentThatIs(t *testing.T) {
	for range 50 {
		ctx, end := context.WithCancel(t.Context())
		c := NewChild([]string{"sleep", "600"})
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
			c := NewChild(tc.command)
			c.Start()
			if err := c.Run(t.Context(), nil, time.Second); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
	t.Run("it fails", func(t *testing.T) {
		c := NewChild([]string{"false"})
		c.Start()
		if _, is := errors.AsType[*exec.ExitError](c.Run(t.Context(), nil, time.Second)); !is {
			t.Error("the exit code is lost")
		}
	})
}
