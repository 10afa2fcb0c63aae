// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// tailLines is how much of a failed command's output its error carries: enough
// for the first compiler errors, little enough for a terminal.
const tailLines = 30

// RunReported runs the command, which must come from exec.CommandContext, writes what begins, a sign of life in every
// interval, and how long it took. The error of a failed command ends with the
// last lines that it printed.
func RunReported(command *exec.Cmd, progress io.Writer, what string, interval time.Duration) error {
	output := &tail{limit: tailLines}
	command.Stdout, command.Stderr = output, output
	// An interrupt lets go and apt-get end their children and remove their
	// temporary files; whoever does not listen is killed after the delay.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	begin := time.Now()
	fmt.Fprintf(progress, "%s ...\n", what)
	if err := command.Start(); err != nil {
		return err
	}
	stop := reportLife(progress, what, begin, interval, output)
	err := command.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	fmt.Fprintf(progress, "%s took %s\n", what, elapsed(begin))
	return nil
}

// reportLife writes one line per interval until the returned function is called,
// which waits for the last line to be written.
func reportLife(progress io.Writer, what string, begin time.Time, interval time.Duration, output *tail) (stop func()) {
	ended := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Fprintf(progress, "%s ... %s, %s\n", what, elapsed(begin), output.status())
			}
		}
	})
	return func() { close(ended); reporter.Wait() }
}

func elapsed(begin time.Time) string { return time.Since(begin).Round(100 * time.Millisecond).String() }

// tail keeps the last lines that were written to it and counts them all.
type tail struct {
	limit   int
	mu      sync.Mutex
	partial []byte
	lines   []string
	count   int
}

// Write takes output of a command; it never fails.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, data...)
	for {
		line, rest, found := bytes.Cut(t.partial, []byte("\n"))
		if !found {
			return len(data), nil
		}
		t.partial = rest
		t.push(string(line))
	}
}

func (t *tail) push(line string) {
	t.count++
	t.lines = append(t.lines, line)
	if len(t.lines) > t.limit {
		t.lines = t.lines[1:]
	}
}

// status says in a few words how far a "go build -v" is, which prints one line
// for each package that it compiles.
func (t *tail) status() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return "resolving modules"
	}
	return fmt.Sprintf("%d packages so far, now %s", t.count, t.lines[len(t.lines)-1])
}

// String is what was kept, including a last line without an end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if len(t.partial) > 0 {
		lines = append(slices.Clip(lines), string(t.partial))
	}
	return strings.Join(lines, "\n")
}
