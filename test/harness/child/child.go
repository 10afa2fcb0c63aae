// SPDX-License-Identifier: Apache-2.0

// Package child binds the processes that a test starts to the life of the test: when
// the test is killed, no cleanup runs, and the kernel ends its processes ([Bind],
// [Wrap]).
//
// The kernel watches the thread that started the process, not the whole test. The Go
// runtime keeps its threads for the life of the program, with one exception: a
// goroutine that ends while it is locked to its thread takes the thread along. That is
// why test/arch lists the tests that may lock a goroutine to a thread.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Bind has the kernel kill the process of a command when this process ends. Bind
// returns the command, and keeps the other attributes that the command has.
func Bind(cmd *exec.Cmd) *exec.Cmd {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd
}

// Wrap writes a script into a folder that becomes the program, bound to the process
// that started the script. It serves programs that a library starts. The script has the
// name of the program; Wrap returns its path.
func Wrap(folder, program string) (string, error) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return "", fmt.Errorf("wrapping %s (install the package util-linux): %w", filepath.Base(program), err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --pdeathsig KILL -- %s \"$@\"\n", quote(setpriv), quote(program))
	path := filepath.Join(folder, filepath.Base(program))
	if present, err := os.ReadFile(path); err == nil && string(present) == script {
		return path, nil
	}
	if err := writeExecutable(path, script); err != nil {
		return "", fmt.Errorf("wrapping %s: %w", filepath.Base(program), err)
	}
	return path, nil
}

// quote makes a word of the shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// writeExecutable puts a whole file in place at once: other tests may run it.
func writeExecutable(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // executables, for other users too
		return err
	}
	// A child that is forked while the new file is open for writing keeps the kernel
	// from running the file ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Chmod(0o755), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
