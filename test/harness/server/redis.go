// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is a real redis-server that keeps nothing on disk.
type Redis struct {
	// Socket is where everybody gets in who can read the directory.
	Socket string
	cmd    *exec.Cmd
}

// StartRedis starts a server on a socket in directory, which must be short: the
// path of a socket has at most 107 bytes. options are further ones of
// redis-server. The caller kills it.
func StartRedis(ctx context.Context, directory string, options ...string) (*Redis, error) {
	r := &Redis{Socket: filepath.Join(directory, "s")}
	options = append([]string{"--port", "0", "--unixsocket", r.Socket, "--save", "", "--appendonly", "no", "--dir", directory}, options...)
	r.cmd = exec.Command("redis-server", options...) //nolint:gosec,noctx // a test's own server; Kill ends it, not a context
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis-server (install the package redis-server): %w", err)
	}
	client := r.Client()
	defer func() { _ = client.Close() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for client.Ping(ctx).Err() != nil {
		select {
		case <-ctx.Done():
			r.Kill()
			return nil, fmt.Errorf("redis-server never answers: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return r, nil
}

// Client connects through the socket; the caller closes it.
func (r *Redis) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: r.Socket, Protocol: 2, DisableIdentity: true})
}

// Kill ends the server, as a node that dies does.
func (r *Redis) Kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	_ = r.cmd.Wait()         // "signal: killed" is what is wanted
}
