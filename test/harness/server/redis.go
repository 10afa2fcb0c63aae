// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// Redis is a real redis-server.
type Redis struct {
	// Socket is where everybody gets in who can read the directory; empty for a
	// server of StartRedisWith.
	Socket string
	login  redis.Options
	cmd    *exec.Cmd
	log    *lockedBuffer
	exited chan struct{} // closed at its end
}

// StartRedis starts a server that keeps nothing on disk on a socket in directory,
// which must be short: the path of a socket has at most 107 bytes. options are
// further ones of redis-server. After a Kill it can be started there again. The
// caller kills it.
func StartRedis(ctx context.Context, directory string, options ...string) (*Redis, error) {
	socket := filepath.Join(directory, "s")
	options = append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", directory}, options...)
	r, err := StartRedisWith(ctx, redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true}, options...)
	if err != nil {
		return nil, err
	}
	r.Socket = socket
	return r, nil
}

// StartRedisWith starts a server with these arguments and no others, and waits
// until it answers whoever logs in so. The caller kills it.
func StartRedisWith(ctx context.Context, login redis.Options, args ...string) (*Redis, error) {
	r := &Redis{login: login, log: &lockedBuffer{}, exited: make(chan struct{})}
	r.cmd = child.Bind(exec.Command("redis-server", args...)) //nolint:gosec,noctx // a test's own server; Kill ends it, not a context
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis-server (install the package redis-server): %w", err)
	}
	go func() {
		_ = r.cmd.Wait() // "signal: killed" is what is wanted
		close(r.exited)
	}()
	if err := r.answers(ctx); err != nil {
		r.Kill()
		return nil, fmt.Errorf("%w\n%s", err, r.log)
	}
	return r, nil
}

// answers waits until the server answers.
func (r *Redis) answers(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.exited:
			return errors.New("redis-server ended at once")
		case <-ctx.Done():
			return fmt.Errorf("waited until redis-server answers: %w; last seen: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// ping asks once. The library's own retries would take longer than the server may
// live, and a client that failed to connect for a while tries only once a second.
func (r *Redis) ping(ctx context.Context) error {
	login := r.login
	login.MaxRetries, login.DialerRetries = -1, 1
	client := redis.NewClient(&login)
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

// Client logs in as the one whom the server answered at its start; the caller
// closes it.
func (r *Redis) Client() *redis.Client {
	login := r.login
	return redis.NewClient(&login)
}

// Said is what the server has printed so far.
func (r *Redis) Said() string { return r.log.String() }

// Signal sends a signal, e.g. SIGSTOP for a server that hangs.
func (r *Redis) Signal(sig syscall.Signal) error {
	if err := r.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to redis-server: %w", sig, err)
	}
	return nil
}

// Kill ends the server, as a node that dies does; a second call does nothing.
func (r *Redis) Kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.exited
}
