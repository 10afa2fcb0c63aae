// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	redisserver "github.com/plumbline-dev/plumbline/test/harness/server"
)

func TestMain(m *testing.M) {
	SetClientLog(discard())
	goleak.VerifyTestMain(m)
}

// patience bounds every wait.
const patience = 10 * time.Second

// server is a real redis-server on a unix socket of its own.
type server struct {
	t         *testing.T
	directory string
	socket    string
	running   *redisserver.Redis
}

// startServer needs redis-server (Debian package redis-server) in PATH.
func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, directory: shortDir(t)}
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

// start starts it, once more after a kill.
func (s *server) start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	running, err := redisserver.StartRedis(ctx, s.directory)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running, s.socket = running, running.Socket
}

// kill is a crash: no shutdown, nothing saved.
func (s *server) kill() { s.running.Kill() }

// client is patient: a busy machine must not lose the records of a test about
// something else.
func (s *server) client() *redis.Client {
	return NewClient(Config{Address: s.socket, CallBudget: 5 * time.Second}).(*redis.Client) //nolint:forcetypeassert // that of one server
}

// newClient returns a client that the test closes.
func (s *server) newClient(t *testing.T) *redis.Client {
	client := s.client()
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	poll.True(t, patience, what, condition)
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
