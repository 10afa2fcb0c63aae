// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestAServerThatDiesMidwayLosesLittleAndBlocksNobody(t *testing.T) {
	s := startServer(t)
	w := NewWriter(s.newClient(t), "t", 16, discard())
	run(t, w)
	w.Enqueue(record(1))
	eventually(t, "the first record is written", func() bool { return testutil.ToFloat64(w.metrics.written) == 1 })

	s.kill()
	enqueued := make(chan int, 1)
	go func() {
		accepted := 0
		for n := range 1000 {
			if w.Enqueue(record(n)) {
				accepted++
			}
		}
		enqueued <- accepted
	}()
	// 10 ms for each of them would be too long.
	accepted := poll.Receive(t, patience, "1000 records to a dead server are taken or dropped", enqueued)
	if accepted == 1000 {
		t.Error("a queue of 16 took 1000 records")
	}
	if dropped := testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropFull)); dropped != float64(1000-accepted) {
		t.Errorf("counted %v dropped records, want %d", dropped, 1000-accepted)
	}
	eventually(t, "the failure shows", func() bool { return testutil.ToFloat64(w.metrics.up) == 0 })

	reader := NewReader(s.newClient(t), "t")
	if _, err := reader.Next(t.Context(), "", 10, 0); err == nil || reader.Healthy() {
		t.Errorf("a dead server gave err %v, healthy %v; want unknown", err, reader.Healthy())
	}

	s.start()
	eventually(t, "what waited is written after the restart", func() bool {
		b, err := reader.Next(t.Context(), "", MaxRead, 0)
		return err == nil && len(b.Entries) > 0
	})
	eventually(t, "recovery shows", func() bool { return testutil.ToFloat64(w.metrics.up) == 1 })
	// Every record is written, dropped with a reason, or still waiting.
	eventually(t, "the books balance", func() bool {
		sum := testutil.ToFloat64(w.metrics.written) - 1 + testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropRedis))
		return sum == float64(accepted)
	})
}

func TestStoppingWritesWhatWaits(t *testing.T) {
	client := startServer(t).newClient(t)
	w := NewWriter(client, "t", 0, discard())
	for n := range 300 {
		w.Enqueue(record(n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := client.XLen(t.Context(), "t:details").Val(); n != 300 {
		t.Errorf("stream has %d entries, want 300", n)
	}
}

// callsWithin counts calls, and checks that each ends within a budget.
type callsWithin struct {
	t      *testing.T
	budget time.Duration
	made   int
}

// DialHook implements redis.Hook.
func (c *callsWithin) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *callsWithin) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(ctx)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *callsWithin) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(ctx)
		return next(ctx, cmds)
	}
}

func (c *callsWithin) count(ctx context.Context) {
	c.made++
	if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > c.budget {
		c.t.Errorf("a call may last until %v", end)
	}
}

func TestStoppingDoesNotWaitForADeadServer(t *testing.T) {
	s := startServer(t)
	client := s.newClient(t)
	calls := &callsWithin{t: t, budget: client.Options().ReadTimeout}
	client.AddHook(calls)
	w := NewWriter(client, "t", 0, discard())
	s.kill()
	for n := range 300 {
		w.Enqueue(record(n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if err := poll.Receive(t, patience, "the writer ends", ended); err != nil {
		t.Fatal(err)
	}
	if calls.made != 1 {
		t.Errorf("%d calls were made of a dead server, want one", calls.made)
	}
	if n := testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropRedis)); n != 300 {
		t.Errorf("counted %v dropped records, want 300", n)
	}
}

func TestOldEntriesAreTrimmed(t *testing.T) {
	client := startServer(t).newClient(t)
	// Whole nodes are trimmed, of 100 entries by default.
	for n := range 250 {
		old := strconv.Itoa(1000 + n)
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "t:details", ID: old + "-0", Values: []any{"r", "{}"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, client, record(1))
	if n := client.XLen(t.Context(), "t:details").Val(); n > 100 {
		t.Errorf("%d entries are left of 251, 250 of them 50 years old", n)
	}
}

func TestWithoutRedisEveryRecordIsDroppedAndCounted(t *testing.T) {
	w := NewWriter(nil, "t", 0, discard())
	stop := run(t, w)
	if w.Enqueue(record(1)) {
		t.Error("took a record")
	}
	stop()
	if n := testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropDisabled)); n != 1 {
		t.Errorf("counted %v", n)
	}
	problems, err := testutil.CollectAndLint(w)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", err, problems)
	}
}

func TestAWriterWithoutALogSurvivesADeadServer(t *testing.T) {
	s := startServer(t)
	w := NewWriter(s.newClient(t), "t", 16, nil)
	run(t, w)
	w.Enqueue(record(1))
	eventually(t, "the first record is written", func() bool { return testutil.ToFloat64(w.metrics.written) == 1 })
	s.kill()
	w.Enqueue(record(2))
	eventually(t, "the failure shows", func() bool { return testutil.ToFloat64(w.metrics.up) == 0 })
}

// slow is a server that answers a ping in time and a pipeline too late.
type slow struct{ redis.UniversalClient }

func (s slow) Pipeline() redis.Pipeliner { return late{s.UniversalClient.Pipeline()} }

// late is a pipeline whose answers come too late: what it carried was lost.
type late struct{ redis.Pipeliner }

func (late) Exec(context.Context) ([]redis.Cmder, error) { return nil, context.DeadlineExceeded }

func TestAnIdleWriterShowsARecoveryWithoutAnotherRecord(t *testing.T) {
	s := startServer(t)
	w := NewWriter(slow{s.newClient(t)}, "t", 16, discard())
	run(t, w)
	w.Enqueue(record(1))
	eventually(t, "the record is lost", func() bool {
		return testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropRedis)) == 1
	})
	eventually(t, "recovery shows", func() bool { return testutil.ToFloat64(w.metrics.up) == 1 })
}

func TestTheACLUserOfTheChartSuffices(t *testing.T) {
	s := startServer(t)
	admin := s.newClient(t)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "plumbline", "on", ">secret", "~t:*", "+@stream", "+@connection", "+time").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">other").Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := NewClient(Config{Address: s.socket, Username: "plumbline", PasswordFile: file, CallBudget: 5 * time.Second})
	t.Cleanup(func() { _ = client.Close() })
	write(t, client, record(1))
	if diff := cmp.Diff([]string{"u1"}, uids(mustNext(t, NewReader(client, "t"), ""))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err := NewReader(client, "elsewhere").Next(t.Context(), "", 1, 0)
	if err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a foreign prefix gave %v, want NOPERM", err)
	}
}
