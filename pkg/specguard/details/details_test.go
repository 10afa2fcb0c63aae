// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func record(n int) specguard.WriteRecord {
	replicas := int32(n)
	return specguard.WriteRecord{
		UID: "u" + strconv.Itoa(n), APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Operation: specguard.OperationUpdate, ResourceVersionBefore: "41", Generation: int64(n), HashAfter: "pl1:sha256:ab",
		Replicas: &replicas, Fields: []string{"/spec/replicas"},
		Identity: specguard.Identity{User: "alice", Groups: []string{"devs"}},
		Time:     time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
}

func write(t *testing.T, client redis.UniversalClient, records ...specguard.WriteRecord) {
	t.Helper()
	w := NewWriter(client, "t", 0, discard())
	stop := run(t, w)
	for _, rec := range records {
		if !w.Enqueue(rec) {
			t.Fatal("the queue refused a record")
		}
	}
	eventually(t, "records are written", func() bool { return testutil.ToFloat64(w.metrics.written) == float64(len(records)) })
	stop()
}

func uids(b Batch) []string {
	var out []string
	for _, e := range b.Entries {
		out = append(out, e.Record.UID)
	}
	return out
}

func mustNext(t *testing.T, r *Reader, after Position) Batch {
	t.Helper()
	b, err := r.Next(t.Context(), after, MaxRead, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARecordArrivesAsItWasWritten(t *testing.T) {
	client := startServer(t).newClient(t)
	write(t, client, record(1))
	r := NewReader(client, "t")
	if r.Healthy() {
		t.Error("healthy before the first read")
	}
	b := mustNext(t, r, "")
	if diff := cmp.Diff(record(1), b.Entries[0].Record); diff != "" {
		t.Errorf("record (-want +got)\n%s", diff)
	}
	if !r.Healthy() || b.Gap || b.Malformed != 0 {
		t.Errorf("healthy %v, gap %v, malformed %d", r.Healthy(), b.Gap, b.Malformed)
	}
}

func TestReading(t *testing.T) {
	client := startServer(t).newClient(t)
	write(t, client, record(1), record(2), record(3))

	t.Run("goes on from a position in another reader", func(t *testing.T) {
		first, err := NewReader(client, "t").Next(t.Context(), "", 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		second := mustNext(t, NewReader(client, "t"), first.Next)
		if diff := cmp.Diff([]string{"u3"}, uids(second)); diff != "" || second.Gap {
			t.Errorf("gap %v (-want +got)\n%s", second.Gap, diff)
		}
	})
	t.Run("since a time in the future finds nothing and loses nothing", func(t *testing.T) {
		b := mustNext(t, NewReader(client, "t"), PositionAt(time.Now().Add(time.Hour)))
		if len(b.Entries) != 0 || b.Gap {
			t.Errorf("got %v, gap %v", uids(b), b.Gap)
		}
	})
	t.Run("since a time in the past finds all", func(t *testing.T) {
		b := mustNext(t, NewReader(client, "t"), PositionAt(time.Now().Add(-time.Hour)))
		if diff := cmp.Diff([]string{"u1", "u2", "u3"}, uids(b)); diff != "" || b.Gap {
			t.Errorf("gap %v (-want +got)\n%s", b.Gap, diff)
		}
	})
	t.Run("a blocked read is woken by a new record", func(t *testing.T) {
		r := NewReader(client, "t")
		at := mustNext(t, r, "").Next
		got := make(chan Batch, 1)
		go func() {
			b, err := r.Next(context.Background(), at, 10, MaxBlock)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		write(t, client, record(4))
		if diff := cmp.Diff([]string{"u4"}, uids(<-got)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a position that is none is an error", func(t *testing.T) {
		for _, p := range []Position{"x", "1", "1-x", "-"} {
			if _, err := NewReader(client, "t").Next(t.Context(), p, 1, 0); err == nil {
				t.Errorf("%q was taken", p)
			}
		}
	})
	t.Run("entries that are no records are skipped and counted", func(t *testing.T) {
		for _, values := range [][]any{{"r", "{"}, {"r", "{}"}, {"other", "1"}, {"r", `{"operation":3}`}} {
			if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "bad:details", Values: values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		r := NewReader(client, "bad")
		b := mustNext(t, r, "")
		if b.Malformed != 4 || len(b.Entries) != 0 {
			t.Errorf("malformed %d, entries %d", b.Malformed, len(b.Entries))
		}
		if again := mustNext(t, r, b.Next); again.Malformed != 0 || again.Gap {
			t.Errorf("read the same entries again: %+v", again)
		}
	})
}

// TestAnIdleStreamIsHealthy: a server ends a wait by a timer that runs ten times
// a second, or only once, so an answer comes late by up to one of its rounds.
func TestAnIdleStreamIsHealthy(t *testing.T) {
	for name, hz := range map[string]string{"at the default timer rate": "10", "at the slowest timer rate": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := startServer(t).newClient(t)
			if err := client.ConfigSet(t.Context(), "hz", hz).Err(); err != nil {
				t.Fatal(err)
			}
			write(t, client, record(1))
			r := NewReader(client, "t")
			at := mustNext(t, r, "").Next
			for n := range 12 {
				// Different lengths end at different points of the server's round.
				block := 2*CallBudget + time.Duration(n*7)*time.Millisecond
				b, err := r.Next(t.Context(), at, 10, block)
				if err != nil || !r.Healthy() {
					t.Fatalf("waiting %v: healthy %v, %v", block, r.Healthy(), err)
				}
				if len(b.Entries) != 0 || b.Gap || b.Next != at {
					t.Fatalf("an idle stream gave %+v", b)
				}
			}
		})
	}
}

// TestAServerThatStopsAnsweringIsUnknown: the wait for a late answer is bounded.
func TestAServerThatStopsAnsweringIsUnknown(t *testing.T) {
	s := startServer(t)
	client := s.newClient(t)
	write(t, client, record(1))
	at := mustNext(t, NewReader(client, "t"), "").Next
	hasty := NewClient(Config{Address: s.socket, CallBudget: time.Second})
	t.Cleanup(func() { _ = hasty.Close() })
	r := NewReader(hasty, "t")
	const block = time.Second
	failed := make(chan error, 1)
	start := time.Now()
	go func() {
		_, err := r.Next(context.Background(), at, 10, block)
		failed <- err
	}()
	watcher := s.newClient(t)
	eventually(t, "the read waits", func() bool {
		info, err := watcher.InfoMap(t.Context(), "clients").Result()
		return err == nil && info["Clients"]["blocked_clients"] == "1"
	})
	if err := s.running.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.running.Signal(syscall.SIGCONT) }) // before it is killed
	if err := poll.Receive(t, patience, "the read ends", failed); err == nil || r.Healthy() {
		t.Errorf("a stopped server gave err %v, healthy %v; want unknown", err, r.Healthy())
	}
	if took := time.Since(start); took < block {
		t.Errorf("noticed after %v, before an answer was due", took)
	}
}

func TestLostRecordsAreAGap(t *testing.T) {
	tests := map[string]struct {
		lose func(t *testing.T, client *redis.Client)
		want bool
	}{
		"nothing happened": {lose: func(*testing.T, *redis.Client) {}},
		"new records only": {lose: func(t *testing.T, c *redis.Client) { write(t, c, record(8)) }},
		"what was read already is trimmed": {lose: func(t *testing.T, c *redis.Client) {
			write(t, c, record(8))
			trim(t, c, 1)
		}},
		"unread records are trimmed": {want: true, lose: func(t *testing.T, c *redis.Client) {
			write(t, c, record(8), record(9))
			trim(t, c, 1)
		}},
		"all is trimmed": {want: true, lose: func(t *testing.T, c *redis.Client) {
			write(t, c, record(8))
			trim(t, c, 0)
		}},
		"flushed": {want: true, lose: func(t *testing.T, c *redis.Client) {
			if err := c.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}},
		"flushed and begun anew": {want: true, lose: func(t *testing.T, c *redis.Client) {
			if err := c.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			write(t, c, record(8))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			client := startServer(t).newClient(t)
			write(t, client, record(1), record(2))
			r := NewReader(client, "t")
			at := mustNext(t, r, "").Next
			tc.lose(t, client)
			b := mustNext(t, r, at)
			if b.Gap != tc.want {
				t.Errorf("gap = %v, want %v", b.Gap, tc.want)
			}
			if again := mustNext(t, r, b.Next); again.Gap {
				t.Error("one loss was reported twice")
			}
		})
	}
}

func trim(t *testing.T, c *redis.Client, keep int64) {
	t.Helper()
	if err := c.XTrimMaxLen(t.Context(), "t:details", keep).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreReadAfterAFlush(t *testing.T) {
	client := startServer(t).newClient(t)
	write(t, client, record(1), record(2))
	r := NewReader(client, "t")
	at := mustNext(t, r, "").Next
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	at = mustNext(t, r, at).Next
	write(t, client, record(7))
	b := mustNext(t, r, at)
	if diff := cmp.Diff([]string{"u7"}, uids(b)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

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
	calls := &callsWithin{t: t, budget: time.Second}
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
	if calls.made > 2 { // one of Run, which may take a record first, and one for the rest
		t.Errorf("%d calls were made of a dead server", calls.made)
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
