// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"strconv"
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
