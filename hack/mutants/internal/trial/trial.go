// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

const (
	// A mutant may run for leastTime and so many times as long as the original. One
	// that takes longer is killed: it does not end.
	leastTime, timesOriginal = 20 * time.Second, 10
	// grace is how much later the process is killed than its tests end themselves.
	grace = 10 * time.Second
	// dataKilobytes bounds the memory of a mutant that allocates without end.
	dataKilobytes = 4 << 20
)

// Runner tries the mutants of one package.
type Runner struct {
	target  Target
	scratch string
	limit   time.Duration
}

// NewRunner builds the tests of a package, and runs them without a mutant: they must
// pass, and the time that they take bounds that of the mutants. It writes below scratch.
func NewRunner(ctx context.Context, target Target, scratch string) (*Runner, error) {
	r := &Runner{target: target, scratch: scratch, limit: 10 * time.Minute}
	dir, err := os.MkdirTemp(scratch, "original-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, output, err := r.build(ctx, dir, "")
	if err != nil {
		return nil, fmt.Errorf("building the tests of %s: %w: %s", target.Path, err, output)
	}
	var said bytes.Buffer
	begin := time.Now()
	if err := r.start(ctx, binary, dir, &said); err != nil {
		return nil, fmt.Errorf("running the tests of %s without a mutant: %w: %s", target.Path, err, said.Bytes())
	}
	r.limit = leastTime + timesOriginal*time.Since(begin)
	return r, nil
}

// TryMutant builds the tests with a mutant and runs them.
func (r *Runner) TryMutant(ctx context.Context, m *mutation.Mutant) (campaign.Verdict, error) {
	dir, err := os.MkdirTemp(r.scratch, "mutant-")
	if err != nil {
		return "", fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := r.writeOverlay(dir, m)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", m, err)
	}
	binary, output, err := r.build(ctx, dir, overlay)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && compileError.Match(output):
		return campaign.NotCompiled, nil
	case err != nil:
		return "", fmt.Errorf("building %s: %w: %s", m, err, output)
	}
	verdict, err := judge(ctx, r.start(ctx, binary, dir, nil))
	if err != nil {
		return "", fmt.Errorf("running %s: %w", m, err)
	}
	return verdict, nil
}

// judge says what the end of the tests of a mutant means. An error is no verdict.
func judge(ctx context.Context, err error) (campaign.Verdict, error) {
	var failed *exec.ExitError
	switch {
	case err == nil:
		return campaign.Survived, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &failed):
		return campaign.Killed, nil
	}
	return "", err
}

// compileError matches a place that the compiler names.
var compileError = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: `)

// writeOverlay writes the mutated file, and the file that says whose place it takes.
func (r *Runner) writeOverlay(dir string, m *mutation.Mutant) (string, error) {
	original := filepath.Join(r.target.Root, m.File)
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(mutated, m.Apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

func (r *Runner) build(ctx context.Context, dir, overlay string) (binary string, output []byte, err error) {
	binary = filepath.Join(dir, "unit.test")
	args := []string{"test", "-c", "-vet=off", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+r.target.Path)...)
	cmd.Dir = r.target.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	endWithGroup(cmd)
	output, err = cmd.CombinedOutput()
	return binary, output, err
}

// start runs a test binary as go test does. Property tests begin from one seed, write no
// file, and look for no smaller example.
func (r *Runner) start(ctx context.Context, binary, dir string, output *bytes.Buffer, environment ...string) error {
	args := []string{
		"-c", "ulimit -d " + strconv.Itoa(dataKilobytes) + ` && exec "$0" "$@"`,
		binary, "-test.paniconexit0", "-test.failfast", "-test.timeout=" + r.limit.String(),
	}
	if r.target.Rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.seed=1", "-rapid.shrinktime=1ms")
	}
	args = append(args, r.target.Arguments...)
	ctx, cancel := context.WithTimeout(ctx, r.limit+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = filepath.Join(r.target.Root, r.target.Path)
	cmd.Env = slices.Concat(os.Environ(), []string{"TMPDIR=" + dir, "UPDATE_GOLDEN="}, environment)
	if output != nil { // else its output goes nowhere, since it may be endless
		cmd.Stdout, cmd.Stderr = output, output
	}
	endWithGroup(cmd)
	return cmd.Run()
}

// endWithGroup has a command end with all that it started.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace
}
