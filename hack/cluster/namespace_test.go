// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// holdProcesses opens the pid namespace of a process until the test ends. While the file
// is open, the kernel gives the number of the namespace to no other one, so that a pod of
// another cluster never passes for a process that is left.
func holdProcesses(t *testing.T, pid int) *os.File {
	t.Helper()
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() }) // it was only read
	return namespace
}

// processesBelow lists the processes of a pid namespace and of those that were made in
// it, such as those of pods. A zombie is not counted: it has ended, and waits for the
// machine's own process 1 to take notice, which may take seconds.
func processesBelow(t *testing.T, namespace *os.File) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	of, err := numberOf(int(namespace.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, folder := range folders {
		if !isBelow(folder, of) || isZombie(folder) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// isBelow tells whether the pid namespace of a process, or one around it, has a number.
// A process that ended meanwhile is in none.
func isBelow(folder string, number uint64) bool {
	at, err := unix.Open(filepath.Join(folder, "ns", "pid"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == nil {
		var is uint64
		if is, err = numberOf(at); err == nil && is == number {
			_ = unix.Close(at) // it was only read
			return true
		}
		// The parent of the outermost namespace is refused.
		around, outermost := unix.IoctlRetInt(at, unix.NS_GET_PARENT)
		_ = unix.Close(at)
		at, err = around, outermost
	}
	return false
}

// numberOf returns the number of an open namespace.
func numberOf(namespace int) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(namespace, &stat); err != nil {
		return 0, fmt.Errorf("looking at a namespace: %w", err)
	}
	return stat.Ino, nil
}

// isZombie looks at the state, the first field after the command in parentheses.
func isZombie(folder string) bool {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return true // reaped in the meantime
	}
	_, after, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	return strings.HasPrefix(after, "Z")
}
