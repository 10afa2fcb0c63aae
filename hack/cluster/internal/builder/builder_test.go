// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPublishFillsOnceHoweverManyAsk(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cache", "thing")
	var fills atomic.Int32
	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() {
			err := Publish(t.Context(), folder, io.Discard, func(staging string) error {
				fills.Add(1)
				if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the folder is visible while it is filled (%v)", err)
				}
				return os.WriteFile(filepath.Join(staging, "file"), []byte("x"), 0o644)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(folder, "file")); err != nil {
				t.Errorf("Publish returned without the content: %v", err)
			}
		})
	}
	askers.Wait()
	if got := fills.Load(); got != 1 {
		t.Errorf("filled %d times, want once", got)
	}
	assertOnly(t, filepath.Dir(folder), "thing")
}

func TestPublishLeavesNothingOfAFailure(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "thing")
	broken := errors.New("compiler says no")
	err := Publish(t.Context(), folder, io.Discard, func(staging string) error {
		return errors.Join(os.WriteFile(filepath.Join(staging, "half"), nil, 0o644), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	assertOnly(t, filepath.Dir(folder))
}

func TestPublishRemovesWhatADeadProcessLeft(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "thing")
	if err := os.MkdirAll(filepath.Join(folder+".staging", "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Publish(t.Context(), folder, io.Discard, func(staging string) error {
		assertOnly(t, staging)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	assertOnly(t, folder)
}

func TestPublishRefusesAFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thing")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := Publish(t.Context(), path, io.Discard, func(string) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("error %v", err)
	}
}

func assertOnly(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s contains %v, want %v", folder, got, want)
	}
}

// TestLockExcludes has many goroutines hold the lock; each looks whether it is
// alone. (A file lock orders nothing that the race detector knows of, hence the
// atomic counter.)
func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, entered atomic.Int32
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			unlock, err := Lock(t.Context(), path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if others := inside.Add(1) - 1; others != 0 {
				t.Errorf("%d others hold the lock", others)
			}
			runtime.Gosched()
			inside.Add(-1)
			entered.Add(1)
			unlock()
		})
	}
	workers.Wait()
	if got := entered.Load(); got != 10 {
		t.Errorf("entered %d times, want 10", got)
	}
	assertOnly(t, filepath.Dir(path))
}

func TestLockGivesUpWithItsContextAndSaysThatItWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	waits := 0
	_, err = Lock(ctx, path, func() { waits++; cancel() })
	if !errors.Is(err, context.Canceled) || waits != 1 {
		t.Errorf("error %v after %d notices, want context.Canceled after 1", err, waits)
	}
}

func TestRunReported(t *testing.T) {
	cases := map[string]struct {
		script   string
		want     []string // in the progress
		wantFail []string // in the error; nil when it must succeed
	}{
		"a command that succeeds is named with its duration": {
			script: "echo pkg/a >&2; exit 0", want: []string{"making it ...\n", "making it took "},
		},
		"a command that fails shows its last lines": {
			script:   "for i in $(seq 100); do echo line $i; done; printf 'no newline'; exit 3",
			want:     []string{"making it ...\n"},
			wantFail: []string{"exit status 3", "\nline 71\n", "\nline 100\nno newline"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var progress bytes.Buffer
			err := RunReported(exec.CommandContext(t.Context(), "sh", "-c", tc.script), &progress, "making it", time.Hour)
			for _, want := range tc.want {
				if !strings.Contains(progress.String(), want) {
					t.Errorf("progress lacks %q:\n%s", want, progress.String())
				}
			}
			if (err != nil) != (tc.wantFail != nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tc.wantFail {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "line 70\n") {
				t.Errorf("error shows more than %d lines:\n%v", tailLines, err)
			}
		})
	}
}

// signal closes a channel at the first line that contains its mark.
type signal struct {
	mark string
	seen chan struct{}
	once sync.Once
}

func (s *signal) Write(data []byte) (int, error) {
	if strings.Contains(string(data), s.mark) {
		s.once.Do(func() { close(s.seen) })
	}
	return len(data), nil
}

// TestRunReportedGivesSignsOfLife runs a command that ends only when its sign of
// life has been seen.
func TestRunReportedGivesSignsOfLife(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command := exec.CommandContext(t.Context(), "sh", "-c", "echo pkg/a; read line")
	command.Stdin = reader
	progress := &signal{mark: "1 packages so far, now pkg/a", seen: make(chan struct{})}
	go func() {
		<-progress.seen
		_ = writer.Close()
	}()
	if err := RunReported(command, progress, "making it", 5*time.Millisecond); err == nil {
		t.Error("read at the end of its input succeeded")
	}
	select {
	case <-progress.seen:
	default:
		t.Error("the command ended without a sign of life")
	}
}

func TestRunReportedInterruptsBeforeItKills(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, "sh", "-c", "trap 'echo tidied up; exit 9' INT; echo started; while :; do sleep 0.01; done")
	progress := &signal{mark: "now started", seen: make(chan struct{})}
	go func() {
		<-progress.seen
		cancel()
	}()
	err := RunReported(command, progress, "making it", 5*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "tidied up") {
		t.Errorf("error %v, want the words of the interrupted command", err)
	}
}

// TestEnsureBuildsOnce compiles a real module, small enough for a second.
func TestEnsureBuildsOnce(t *testing.T) {
	modules := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(modules, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("tiny/go.mod", "module example.test/tiny\n\ngo 1.26\n")
	write("tiny/main.go", "package main\n\nimport (\n\t\"os\"\n)\n\nvar version string\n\nfunc main() { os.Stdout.WriteString(version) }\n")
	tiny := component.Component{
		Name:     "tiny",
		Binaries: []component.Binary{{Package: ".", Name: "tiny", Links: []string{"alias"}}},
		Stamps:   func(string) []component.Stamp { return []component.Stamp{{Variable: "main.version", Value: "stamped"}} },
	}
	var progress bytes.Buffer
	b := Builder{Components: modules, Cache: filepath.Join(t.TempDir(), "cache"), Progress: &progress}
	all := []component.Component{tiny}
	if missing, err := b.Missing(all); err != nil || len(missing) != 1 {
		t.Errorf("Missing = %v, %v before the build", missing, err)
	}
	folders, err := b.Ensure(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), filepath.Join(folders["tiny"], "alias")).Output()
	if err != nil || string(output) != "stamped" {
		t.Errorf("the link printed %q (%v), want the stamp", output, err)
	}
	if missing, err := b.Missing(all); err != nil || len(missing) != 0 {
		t.Errorf("Missing = %v, %v after the build", missing, err)
	}
	progress.Reset()
	again, err := b.Ensure(t.Context(), all)
	if err != nil || again["tiny"] != folders["tiny"] || progress.Len() > 0 {
		t.Errorf("second Ensure = %v, %v, and said %q", again, err, progress.String())
	}

	write("tiny/main.go", "package main\n\nfunc main() { undefined() }\n")
	if _, err := b.Ensure(t.Context(), all); err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("a program that does not compile gives %v, want the compiler's message", err)
	}
}
