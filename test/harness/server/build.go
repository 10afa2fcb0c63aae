// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// raceVariable names the environment variable that gives the binaries of a test the
// race detector. The long run sets it.
const raceVariable = "PLUMBLINE_RACE"

// Build puts commands of this module, named as under cmd/, into a directory. The
// binaries come from bin/test, which all tests share: the go command links a binary
// there only after a change of its source.
func Build(ctx context.Context, directory string, commands ...string) error {
	return BuildWithTags(ctx, directory, "", commands...)
}

// BuildWithTags works like Build, with build tags separated by commas.
func BuildWithTags(ctx context.Context, directory, tags string, commands ...string) error {
	v := variant{tags: tags, race: os.Getenv(raceVariable) != ""}
	shared := filepath.Join(rendered.RepositoryDir(), "bin", "test", v.name())
	if err := os.MkdirAll(shared, 0o755); err != nil { //nolint:gosec // executables, for other users too
		return fmt.Errorf("making the folder of the tests' binaries: %w", err)
	}
	// Tests of several packages build at once. The lock keeps one from copying a
	// binary that another replaces.
	unlock, err := lock(filepath.Join(shared, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := v.build(ctx, shared, commands); err != nil {
		return err
	}
	for _, command := range commands {
		if err := copyExecutable(filepath.Join(shared, command), filepath.Join(directory, command)); err != nil {
			return err
		}
	}
	return nil
}

// variant is one way to compile the commands.
type variant struct {
	tags string
	race bool
}

func (v variant) name() string {
	parts := []string{"plain"}
	if v.race {
		parts[0] = "race"
	}
	if v.tags != "" {
		parts = append(parts, strings.ReplaceAll(v.tags, ",", "-"))
	}
	return strings.Join(parts, "-")
}

func (v variant) arguments(directory string, commands []string) []string {
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", directory + string(filepath.Separator)}
	if v.race {
		arguments = append(arguments, "-race")
	}
	if v.tags != "" {
		arguments = append(arguments, "-tags="+v.tags)
	}
	for _, command := range commands {
		arguments = append(arguments, "github.com/plumbline-dev/plumbline/cmd/"+command)
	}
	return arguments
}

// environment turns C off as the images do; the race detector needs C.
func (v variant) environment() []string {
	if v.race {
		return []string{"CGO_ENABLED=1"}
	}
	return []string{"CGO_ENABLED=0"}
}

func (v variant) build(ctx context.Context, directory string, commands []string) error {
	build := child.Bind(exec.CommandContext(ctx, "go", v.arguments(directory, commands)...))
	build.Env = slices.Concat(os.Environ(), v.environment())
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s (%s): %w\n%s", strings.Join(commands, ", "), v.name(), err, out)
	}
	return nil
}

// lock waits until it alone has the file; the kernel gives the lock back when the
// process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // an empty file
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the tests' binaries: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the tests' binaries: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil // nothing was written
}

func copyExecutable(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("opening a binary: %w", err)
	}
	defer func() { _ = source.Close() }() // only read
	// A child that is forked while the new file is open for writing keeps the kernel
	// from running the file ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	// A process may still run an older binary of that name.
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the older binary: %w", err)
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // an executable
	if err != nil {
		return fmt.Errorf("making a binary: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := io.Copy(target, source); err != nil {
		return fmt.Errorf("copying %s: %w", filepath.Base(to), err)
	}
	return nil
}
