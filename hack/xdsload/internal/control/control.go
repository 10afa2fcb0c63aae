// SPDX-License-Identifier: Apache-2.0

// Package control is how the process that loads a server speaks with the one that
// serves: a line of JSON for each command, and one for its answer.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

// Ready is what a server says first.
type Ready struct {
	Addresses []string
	// Certificate and Key of the issuer are DER.
	Certificate, Key []byte
}

// Op is what is asked of a server.
type Op string

// The operations.
const (
	// Measure asks for its Usage, Collect for that after a garbage collection.
	Measure Op = "measure"
	Collect Op = "collect"
	// Publish takes a step, and Await waits until those that are expected have
	// acknowledged it.
	Publish Op = "publish"
	Await   Op = "await"
)

// Command to a server.
type Command struct {
	Op     Op
	Target world.Target  `json:",omitempty"`
	Step   world.Step    `json:",omitempty"`
	Expect int           `json:",omitempty"`
	Within time.Duration `json:",omitempty"`
}

// Answer to a command.
type Answer struct {
	Error string `json:",omitempty"`
	// Took is what it took each proxy to acknowledge a step.
	Took  []time.Duration `json:",omitempty"`
	Usage Usage
}

// Usage of a process.
type Usage struct {
	// CPU time so far.
	CPU time.Duration
	// Resident, Heap and Stacks are bytes: Heap those of live objects, Stacks those of
	// goroutines.
	Resident, Heap, Stacks, Peak int64
	Goroutines                   int
	// Sent and Received are bytes on the wire so far, TLS included.
	Sent, Received int64
	Streams        int
	Troubles       map[string]int64
}

// settle collects garbage until that frees next to nothing more, as a server does that
// runs for some minutes: stacks shrink by half at most with each collection.
func settle() error {
	const rounds, enough = 8, 0.01
	before, err := resident()
	for range rounds {
		debug.FreeOSMemory() // collects, too
		var now int64
		if now, err = resident(); err != nil || float64(before-now) < enough*float64(before) {
			return err
		}
		before = now
	}
	return err
}

// Own usage of this process, after garbage was collected or not.
func Own(collect bool) (u Usage, err error) {
	if collect {
		if err := settle(); err != nil {
			return u, err
		}
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, fmt.Errorf("reading the usage of this process: %w", err)
	}
	u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	u.Peak = r.Maxrss << 10
	u.Goroutines = runtime.NumGoroutine()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Heap, u.Stacks = int64(m.HeapAlloc), int64(m.StackInuse)
	u.Resident, err = resident()
	return u, err
}

// resident bytes of this process.
func resident() (int64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of this process: %w", err)
	}
	var pages int64
	if _, err := fmt.Sscan(strings.Fields(string(statm))[1], &pages); err != nil {
		return 0, fmt.Errorf("reading the memory of this process: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Server is a process that serves.
type Server struct {
	Ready
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// Start this program once more, as a server. It ends when ctx does, at the latest.
func Start(ctx context.Context, program string, args, environment []string, stderr io.Writer) (*Server, error) {
	s := &Server{command: exec.CommandContext(ctx, program, args...)}
	s.command.Env = append(os.Environ(), environment...)
	s.command.Stderr = stderr
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	if s.in, err = s.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	s.out = json.NewDecoder(out)
	if err := s.out.Decode(&s.Ready); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the server: %w", err), s.Stop())
	}
	return s, nil
}

// Do a command.
func (s *Server) Do(c Command) (Answer, error) {
	if err := json.NewEncoder(s.in).Encode(c); err != nil {
		return Answer{}, fmt.Errorf("telling the server to %s: %w", c.Op, err)
	}
	var a Answer
	if err := s.out.Decode(&a); err != nil {
		return a, fmt.Errorf("waiting for the server to %s: %w", c.Op, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("the server was to %s: %s", c.Op, a.Error)
	}
	return a, nil
}

// Stop the server, and wait until it has.
func (s *Server) Stop() error {
	if err := s.in.Close(); err != nil {
		return fmt.Errorf("stopping the server: %w", err)
	}
	if err := s.command.Wait(); err != nil {
		return fmt.Errorf("stopping the server: %w", err)
	}
	return nil
}
