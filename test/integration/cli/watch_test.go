// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli"
)

// watched is a command line with --watch, whose output is read while the command runs.
type watched struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  func() int
}

// watch begins a command line, which ends with the test or after a minute.
func watch(t *testing.T, namespace string, args ...string) *watched {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		all := append([]string{"--kubeconfig", kubeconfig, "-n", namespace}, args...)
		got := cli.Run(ctx, all, cli.Environment{In: &bytes.Buffer{}, Out: write, Err: write, Now: time.Now, Version: "test"})
		_ = write.Close()
		code <- got
	}()
	return &watched{t: t, lines: bufio.NewScanner(read), stop: func() int {
		cancel()
		_, _ = io.Copy(io.Discard, read)
		return <-code
	}}
}

// next reads lines up to the first one that has all words.
func (w *watched) next(words ...string) {
	w.t.Helper()
	var read []string
	for w.lines.Scan() {
		read = append(read, w.lines.Text())
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(w.lines.Text(), word)
		}
		if !missing {
			return
		}
	}
	w.t.Fatalf("the command ended (%v) without a line with %q:\n%s", w.lines.Err(), words, strings.Join(read, "\n"))
}

func TestWatch_StatusPrintsTheRowThatDrifted(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	for _, name := range []string{"calm", "web"} {
		f.deployment(name, "nginx:1.27")
	}
	f.authorize("calm", "ci", 1)
	baseline := f.authorize("web", "ci", 1)
	w := watch(t, f.namespace, "status", "--watch")
	w.next("✓ 2 in sync") // the last line of the first output
	f.scale("web", 5)
	f.drift(baseline, finding("/spec/replicas", "1", "5", "alice", time.Minute))
	w.next("1 of 2 objects drifted")
	w.next("✗ deployment.apps/web", "alice", "replicas 1 → 5")
	if code := w.stop(); code == 0 {
		t.Error("an interrupted command ended with 0")
	}
}

func TestWatch_PlansPrintsAPlanThatIsMade(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	w := watch(t, f.namespace, "plan", "list", "--watch")
	w.next("No plans found")
	f.plan("p")
	w.next("p", "production")
	w.stop()
}
