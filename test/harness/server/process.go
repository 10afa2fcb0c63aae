// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// stopTime is how long a process has to end by itself after SIGTERM.
const stopTime = 20 * time.Second

// Process is one of our servers, with its metrics and health addresses.
type Process struct {
	// Metrics and Health are host:port.
	Metrics, Health string
	cmd             *exec.Cmd
	log             *lockedBuffer
	exited          chan error
}

// Start starts a binary with its arguments, --metrics-address and
// --health-address before them, and its own name as POD_NAME. The caller stops it.
func Start(binary string, args ...string) (*Process, error) { return StartWith(nil, binary, args...) }

// StartWith is Start with more environment, KEY=value, which holds over that of
// Start.
func StartWith(environment []string, binary string, args ...string) (*Process, error) {
	p := &Process{log: &lockedBuffer{}, exited: make(chan error, 1)}
	for _, address := range []*string{&p.Metrics, &p.Health} {
		port, err := freeport.Claim()
		if err != nil {
			return nil, err
		}
		*address = "127.0.0.1:" + strconv.Itoa(port)
	}
	args = append([]string{"--metrics-address=" + p.Metrics, "--health-address=" + p.Health}, args...)
	p.cmd = child.Bind(exec.Command(binary, args...)) //nolint:gosec,noctx // a test's own binary; Stop ends it, not a context
	p.cmd.Env = slices.Concat(withoutCollector(os.Environ()), []string{"POD_NAME=" + filepath.Base(binary)}, environment)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	return p, nil
}

// withoutCollector removes the setting of Go's garbage collector, which the Makefile
// makes for tests and API servers: our servers run as they do in a pod.
func withoutCollector(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") })
}

// Ready waits until the process says that it is ready.
func (p *Process) Ready(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := "no answer"
	for {
		code, body, err := p.Get(ctx, p.Health, "/readyz")
		switch {
		case code == http.StatusOK:
			return nil
		case ctx.Err() == nil: // else the end of the wait cut the answer off
			last = fmt.Sprint(body, err)
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			return fmt.Errorf("%s ended: %w\n%s", p.cmd.Path, err, p.log)
		case <-ctx.Done():
			return fmt.Errorf("waited until %s is ready: %w; last seen: %s; it said\n%s", p.cmd.Path, ctx.Err(), last, p.log)
		case <-tick.C:
		}
	}
}

// Get reads a page of the process.
func (p *Process) Get(ctx context.Context, address, path string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }() // only read
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

// Metric sums the samples of a metric whose labels contain all of the given
// texts, e.g. `verdict="warn"`.
func (p *Process) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	code, page, err := p.Get(ctx, p.Metrics, "/metrics")
	if err != nil || code != http.StatusOK {
		return 0, fmt.Errorf("reading the metrics: %d %w", code, err)
	}
	return harness.SumSamples(page, name, labels...)
}

// Said is what the process has logged so far.
func (p *Process) Said() string { return p.log.String() }

// Stop ends the process as the kubelet does, and by force when it does not end.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.cmd.Path, err)
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		return nil
	case <-time.After(stopTime):
	}
	return errors.Join(fmt.Errorf("waited %s until %s ends; last seen: it runs, and said\n%s", stopTime, p.cmd.Path, p.log), p.cmd.Process.Kill())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
