// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestProfilesAreWrittenOnSignals(t *testing.T) {
	directory := t.TempDir()
	defer profile(func(string) string { return directory })()
	for _, step := range []struct {
		signal syscall.Signal
		file   string
	}{
		{syscall.SIGUSR1, "memory-1.pprof"}, {syscall.SIGUSR2, "processor"}, {syscall.SIGUSR2, "processor-1.pprof"},
		{syscall.SIGUSR1, "memory-2.pprof"},
	} {
		if err := syscall.Kill(os.Getpid(), step.signal); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, time.Minute, step.file+" is there", func() error {
			_, err := os.Stat(filepath.Join(directory, step.file))
			return err
		})
	}
}
