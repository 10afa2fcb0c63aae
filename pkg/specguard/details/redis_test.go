// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	SetClientLog(discard())
	goleak.VerifyTestMain(m)
}

// server is a real redis-server on a unix socket of its own.
type server struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
}

// startServer needs redis-server (Debian package redis-server) in PATH.
func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, socket: filepath.Join(shortDir(t), "s")}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// shortDir is a directory of the test whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	// The path of a unix socket is short by law; t.TempDir() can be too long.
	dir, err := os.MkdirTemp("", "plredis") //nolint:usetesting // See above.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(s.socket))
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("starting redis-server (install the package redis-server): %v", err)
	}
	client := s.client()
	defer func() { _ = client.Close() }()
	eventually(s.t, "redis-server answers", func() bool { return client.Ping(context.Background()).Err() == nil })
}

// kill is a crash: no shutdown, nothing saved.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// client is patient: a busy machine must not lose the records of a test about
// something else.
func (s *server) client() *redis.Client {
	return NewClient(Config{Address: s.socket, CallBudget: 5 * time.Second})
}

// newClient returns a client that the test closes.
func (s *server) newClient(t *testing.T) *redis.Client {
	client := s.client()
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}

// run starts the writer and returns a function that stops it and waits.
func run(t *testing.T, w *Writer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
