// SPDX-License-Identifier: Apache-2.0

package details

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func heap() int {
	runtime.GC()
	runtime.GC() // what finalizers and pools of the first round let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // a test does not use exabytes
}

// Whoever reaches the webhook's port chooses the names and groups of a review of
// up to 7 MiB.
func TestWhatWaitsIsBoundedInBytes(t *testing.T) {
	const records, each = 40, 2 << 20
	for name, forge := range map[string]func(*specguard.WriteRecord){
		"an endless user":    func(r *specguard.WriteRecord) { r.User = strings.Repeat("u", each) },
		"an endless object":  func(r *specguard.WriteRecord) { r.Name = strings.Repeat("n", each) },
		"an endless uid":     func(r *specguard.WriteRecord) { r.UID = strings.Repeat("i", each) },
		"an endless manager": func(r *specguard.WriteRecord) { r.FieldManager = strings.Repeat("m", each) },
		"endless groups":     func(r *specguard.WriteRecord) { r.Groups = []string{"devs", strings.Repeat("g", each)} },
		"groups without end": func(r *specguard.WriteRecord) {
			for range each / 64 {
				r.Groups = append(r.Groups, strings.Repeat("g", 64))
			}
		},
		"an endless path":      func(r *specguard.WriteRecord) { r.Fields = []string{"/spec", strings.Repeat("p", each)} },
		"64 paths with an end": func(r *specguard.WriteRecord) { r.Fields = slices.Repeat([]string{strings.Repeat("p", each/64)}, 64) },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(startServer(t).newClient(t), "t", records, discard())
			before := heap()
			for n := range records {
				rec := record(n)
				forge(&rec)
				w.Enqueue(rec)
			}
			if took := heap() - before; took > records*64<<10 {
				t.Errorf("%d records that wait take %d bytes", len(w.queue), took)
			}
			dropped := testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropOversized))
			if int(dropped)+len(w.queue) != records {
				t.Errorf("%v are counted as dropped, %d wait, of %d", dropped, len(w.queue), records)
			}
			runtime.KeepAlive(w)
		})
	}
}

// An entry that the reader would refuse is not written: no read gets past an
// answer over its bound.
func TestOneForgedRecordDoesNotKeepTheReaderFromTheOthers(t *testing.T) {
	client := startServer(t).newClient(t)
	w := NewWriter(client, "t", 0, discard())
	run(t, w)
	forged := record(1)
	forged.User = strings.Repeat("u", 2*maxBulk)
	w.Enqueue(forged)
	w.Enqueue(record(2))
	r := NewReader(client, "t")
	eventually(t, "the true record is read", func() bool {
		batch, err := r.Next(t.Context(), "", MaxRead, 0)
		return err == nil && slices.Contains(uids(batch), "u2")
	})
}

// Redis has no room, as after a flood of large records: the oldest make room, and
// a reader that was behind is told.
func TestAFullRedisForgetsTheOldestAndGoesOn(t *testing.T) {
	client := startServer(t).newClient(t)
	used := func() int {
		_, rest, _ := strings.Cut(client.Info(t.Context(), "memory").Val(), "used_memory:")
		line, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	write(t, client, record(0))
	r := NewReader(client, "t")
	at := mustNext(t, r, "").Next
	for setting, value := range map[string]string{"maxmemory-policy": "noeviction", "maxmemory": strconv.Itoa(used() + 4<<20)} {
		if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w := NewWriter(client, "t", 0, discard())
	run(t, w)
	large := record(1)
	large.Fields = slices.Repeat([]string{"/" + strings.Repeat("p", 100)}, 64)
	for range 2000 {
		w.Enqueue(large)
	}
	eventually(t, "there was no room", func() bool { return testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropRedis)) > 0 })
	eventually(t, "the flood is over", func() bool { return len(w.queue) == 0 })
	var batch Batch
	eventually(t, "a record is written and read again", func() bool {
		w.Enqueue(record(7))
		for {
			next, err := r.Next(t.Context(), at, MaxRead, 0)
			if err != nil {
				return false
			}
			batch.Gap = batch.Gap || next.Gap
			if at = next.Next; len(next.Entries) == 0 {
				return false
			}
			if slices.Contains(uids(next), "u7") {
				return true
			}
		}
	})
	if !batch.Gap {
		t.Error("the reader was not told that records are gone")
	}
	if n := testutil.ToFloat64(w.metrics.written) + testutil.ToFloat64(w.metrics.dropped.WithLabelValues(dropRedis)); n < 2000 {
		t.Errorf("%v of more than 2000 records are accounted for", n)
	}
}

// An assessor whose clock is ahead begins to read at a place that is not there
// yet.
func TestAReaderWhoseClockIsAheadReadsWhatComes(t *testing.T) {
	client := startServer(t).newClient(t)
	for name, before := range map[string]int{"of a stream that holds something": 1, "of none": 0} {
		t.Run(name, func(t *testing.T) {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			r := NewReader(client, "t")
			for n := range before {
				write(t, client, record(n))
			}
			at := mustNext(t, r, PositionAt(time.Now().Add(2*time.Hour))).Next
			write(t, client, record(8))
			batch := mustNext(t, r, at)
			if !slices.Equal(uids(batch), []string{"u8"}) || batch.Gap {
				t.Errorf("read %v, a gap: %t", uids(batch), batch.Gap)
			}
		})
	}
}
