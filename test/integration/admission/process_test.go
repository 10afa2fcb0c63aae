// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// patience bounds every wait.
const patience = 60 * time.Second

// process is one replica of the webhook.
type process struct {
	*server.Process
	port int
}

// redisTime is what a call to Redis may take here, where the machine may be busy.
const redisTime = 5 * time.Second

func startWebhook(port int, identity string, extra ...string) (*process, error) {
	args := append([]string{
		"--kubeconfig=" + w.kubeconfig, "--namespace=" + ownNamespace, "--port=" + strconv.Itoa(port), "--server-names=127.0.0.1",
		"--redis-address=" + w.redis.Socket, "--redis-timeout=" + redisTime.String(), "--drain-delay=1s", "--stamp-writer=true", "--stamped-groups=ops",
	}, extra...)
	p, err := server.StartWith([]string{"POD_NAME=" + identity}, w.binary, args...)
	if err != nil {
		return nil, err
	}
	return &process{Process: p, port: port}, nil
}

// stop ends the process as the kubelet does, and by force when it does not end.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	if err := p.Stop(); err != nil {
		tb.Error(err)
	}
}

// answerTime is how long a page of a process may take.
const answerTime = 5 * time.Second

func (p *process) get(address, path string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	return p.Get(ctx, address, path)
}

// metric sums the samples of a metric whose labels contain all of the given
// texts, e.g. `verdict="warn"`; it is -1 while the process does not answer.
func (p *process) metric(name string, labels ...string) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	sum, err := p.Metric(ctx, name, labels...)
	if err != nil {
		return -1
	}
	return sum
}

// sumSamples sums the samples of a metric on a page.
func sumSamples(tb testing.TB, page, name string, labels ...string) float64 {
	tb.Helper()
	sum, err := harness.SumSamples(page, name, labels...)
	if err != nil {
		tb.Fatal(err)
	}
	return sum
}

// startRedis starts one in a directory, once more after it was killed.
func startRedis(ctx context.Context, directory string) (*server.Redis, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return server.StartRedis(ctx, directory)
}

func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	poll.True(tb, patience, what, condition)
}
