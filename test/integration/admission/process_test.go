// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// process is one replica of the webhook.
type process struct {
	cmd     *exec.Cmd
	port    int
	metrics string
	health  string
	log     *lockedBuffer
	exited  chan error
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

func startWebhook(port int, identity string, extra ...string) (*process, error) {
	metrics, err := server.FreePort()
	if err != nil {
		return nil, err
	}
	health, err := server.FreePort()
	if err != nil {
		return nil, err
	}
	p := &process{
		port:    port,
		metrics: "127.0.0.1:" + strconv.Itoa(metrics),
		health:  "127.0.0.1:" + strconv.Itoa(health),
		log:     &lockedBuffer{},
		exited:  make(chan error, 1),
	}
	args := append([]string{
		"--kubeconfig=" + w.kubeconfig, "--namespace=" + ownNamespace, "--port=" + strconv.Itoa(port),
		"--metrics-address=" + p.metrics, "--health-address=" + p.health, "--server-names=127.0.0.1",
		"--redis-address=" + w.redis.socket, "--drain-delay=1s", "--stamp-writer=true", "--stamped-groups=ops",
	}, extra...)
	p.cmd = exec.Command(w.binary, args...)
	p.cmd.Env = append(os.Environ(), "POD_NAME="+identity)
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.exited <- p.cmd.Wait() }()
	return p, nil
}

func (p *process) signal() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// stop ends the process as the kubelet does, and by force when it does not end.
func (p *process) stop() {
	p.signal()
	select {
	case err := <-p.exited:
		p.exited <- err
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
	}
}

func (p *process) get(address, path string) (int, string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func (p *process) waitReady(ctx context.Context) error {
	last := ""
	for ctx.Err() == nil {
		code, body, err := p.get(p.health, "/readyz")
		if code == http.StatusOK {
			return nil
		}
		last = fmt.Sprint(body, err)
		select {
		case err := <-p.exited:
			return fmt.Errorf("the webhook ended: %w\n%s", err, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("the webhook is never ready: %s\n%s", last, p.log)
}

// metric sums the samples of a metric whose labels contain all of the given
// texts, e.g. `verdict="warn"`.
func (p *process) metric(name string, labels ...string) float64 {
	_, body, err := p.get(p.metrics, "/metrics")
	if err != nil {
		return -1
	}
	return sumSamples(body, name, labels...)
}

func sumSamples(text, name string, labels ...string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		matches := true
		for _, l := range labels {
			matches = matches && strings.Contains(rest, l)
		}
		if !matches {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err == nil {
			sum += value
		}
	}
	return sum
}

// redisServer is a real redis-server on a unix socket.
type redisServer struct {
	socket string
	cmd    *exec.Cmd
}

func startRedis(dir string) (*redisServer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &redisServer{socket: filepath.Join(dir, "s")}
	return r, r.start()
}

func (r *redisServer) start() error {
	r.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", r.socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(r.socket))
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("starting redis-server (install the package redis-server): %w", err)
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.socket})
	defer func() { _ = client.Close() }()
	deadline, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for client.Ping(context.Background()).Err() != nil {
		select {
		case <-deadline:
			return errors.New("redis-server never answers")
		case <-tick.C:
		}
	}
	return nil
}

// kill is a crash.
func (r *redisServer) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}
