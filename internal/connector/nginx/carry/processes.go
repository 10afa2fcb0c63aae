// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
)

// process is a line of /proc/PID/stat, and the title of the process.
type process struct {
	nginx.Worker
	parent  int
	stopped bool
	title   string
}

// Titles that nginx gives its processes.
const (
	masterTitle  = "nginx: master process"
	workerTitle  = "nginx: worker process"
	leavingTitle = workerTitle + " is shutting down"
)

// ReadPID reads the file that a master writes. The file may be stale, so that its PID is that of no
// program or of another one.
func ReadPID(file string) (int, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the path is of the agent's configuration
	if err != nil {
		return 0, fmt.Errorf("reading the PID of nginx: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the PID of nginx: %w", err)
	}
	return pid, nil
}

// checkMaster refuses a process of another program, and a master that does not take signals yet: nginx sets
// its title after that.
func checkMaster(pid int) error {
	p, err := readProcess(pid)
	if err != nil {
		return fmt.Errorf("finding nginx: %w", err)
	}
	if !strings.HasPrefix(p.title, masterTitle) {
		return fmt.Errorf("finding nginx: process %d is %.40q, and no master of nginx", pid, p.title)
	}
	return nil
}

// Workers are the children of a master, those of before a reload included, without the helpers of its cache.
// A process that is no master is an error.
func Workers(master int) ([]nginx.State, error) {
	if err := checkMaster(master); err != nil {
		return nil, err
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var states []nginx.State
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // it has ended
			continue
		case err != nil:
			return nil, fmt.Errorf("finding workers of nginx: %w", err)
		}
		if p.parent == master && strings.HasPrefix(p.title, workerTitle) {
			states = append(states, nginx.State{Worker: p.Worker, Leaving: strings.HasPrefix(p.title, leavingTitle), Stopped: p.stopped})
		}
	}
	return states, nil
}

func readProcess(pid int) (process, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat")) //nolint:gosec // a path of /proc
	if err != nil {
		return process{}, err
	}
	title, err := os.ReadFile(filepath.Join(folder, "cmdline")) //nolint:gosec // a path of /proc
	if err != nil {
		return process{}, err
	}
	p, err := parseStat(pid, string(stat))
	p.title = strings.TrimRight(string(title), "\x00 ")
	return p, err
}

// parseStat reads /proc/PID/stat; see proc_pid_stat(5). The name may have any character.
func parseStat(pid int, stat string) (process, error) {
	_, rest, _ := lastCut(stat, ") ")
	fields := strings.Fields(rest)
	const state, parent, started = 0, 1, 19 // behind the name
	if len(fields) <= started {
		return process{}, fmt.Errorf("reading /proc/%d/stat: it has %d fields", pid, len(fields))
	}
	of, err := strconv.Atoi(fields[parent])
	if err != nil {
		return process{}, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[started], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
	}
	stopped := fields[state] == "T" || fields[state] == "t"
	return process{Worker: nginx.Worker{PID: pid, Started: start}, parent: of, stopped: stopped}, nil
}

func lastCut(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
