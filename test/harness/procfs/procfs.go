// SPDX-License-Identifier: Apache-2.0

// Package procfs reads about other processes from /proc.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc/PID/stat, which Linux fixes for user space.
const clockTick = 10 * time.Millisecond

// Stat is the part of /proc/PID/stat that tests look at.
type Stat struct {
	// Name of the program, at most 15 bytes of it.
	Name string
	// State is the letter of proc(5), such as T for a process that a signal has stopped.
	State string
	// Parent is the pid of the parent.
	Parent int
	// Processor is the time of the processors that the process used, user and system.
	Processor time.Duration
}

// ReadStat reads the line of a process; an error says that the process has ended.
func ReadStat(pid int) (Stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, fmt.Errorf("reading about process %d: %w", pid, err)
	}
	return parseStat(raw)
}

// parseStat reads a line of proc(5). The name is in parentheses, and may hold any byte.
func parseStat(line []byte) (Stat, error) {
	begin, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if begin < 0 || end < begin {
		return Stat{}, fmt.Errorf("the name is missing in %q", line)
	}
	fields := strings.Fields(string(line[end+1:])) // from the third of proc(5) on
	if len(fields) < 13 {
		return Stat{}, fmt.Errorf("only %d fields in %q", len(fields), line)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Stat{}, err
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return Stat{}, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return Stat{}, err
	}
	return Stat{Name: string(line[begin+1 : end]), State: fields[0], Parent: parent, Processor: time.Duration(user+system) * clockTick}, nil
}

// FindChild finds the only child of this process with a name, such as the API server,
// whose process envtest does not show.
func FindChild(name string) (int, error) {
	name = name[:min(len(name), 15)] // TASK_COMM_LEN
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	found := 0
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || err != nil {
			continue // the process ended
		}
		s, err := parseStat(raw)
		if err != nil {
			return 0, err
		}
		if s.Name != name || s.Parent != os.Getpid() {
			continue
		}
		if found != 0 {
			return 0, fmt.Errorf("more than one child is named %s", name)
		}
		if found, err = strconv.Atoi(filepath.Base(filepath.Dir(path))); err != nil {
			return 0, err
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("no child is named %s", name)
	}
	return found, nil
}
