// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

func recordOf(uid, user string) specguard.WriteRecord {
	return specguard.WriteRecord{UID: uid, Identity: specguard.Identity{User: user}}
}

func users(j joinable) []string {
	var out []string
	for _, r := range j.records {
		out = append(out, r.User)
	}
	return out
}

func TestRecords(t *testing.T) {
	r := NewRecords()
	r.Add(recordOf("a", "1"), recordOf("b", "2"), recordOf("a", "3"))
	all := r.of("a", "b", "a", "")
	if diff := cmp.Diff([]string{"1", "3", "2"}, users(all)); diff != "" {
		t.Fatalf("records (-want +got):\n%s", diff)
	}
	r.consume(all.from[:1])
	if diff := cmp.Diff([]string{"3"}, users(r.of("a"))); diff != "" {
		t.Errorf("after one was joined (-want +got):\n%s", diff)
	}
	r.consume(all.from)
	if r.has("a") || r.has("b") || len(r.byUID) != 0 || r.order.Len() != 0 || r.bytes != 0 {
		t.Error("records are kept after all were joined")
	}
	r.consume(all.from)
	if r.bytes != 0 {
		t.Error("what was joined twice was let go of twice")
	}
	if all.healthy {
		t.Error("a source that was never read is healthy")
	}
	r.SetHealthy(true)
	if !r.of("a").healthy {
		t.Error("a source that can be read is not healthy")
	}
}

// large is a record as large as they come through the stream, of an object of
// its own.
func large(i int) specguard.WriteRecord {
	record := recordOf(fmt.Sprint("uid-", i), fmt.Sprint(i)+strings.Repeat("u", 1000))
	record.Name = strings.Repeat("n", 1000)
	for range 64 {
		record.Fields = append(record.Fields, "/"+strings.Repeat("p", 100))
	}
	return record
}

func TestRecordsAreBounded(t *testing.T) {
	var dropped Displaced
	add := func(r *Records, record specguard.WriteRecord) {
		d := r.Add(record)
		dropped.PerObject, dropped.Count, dropped.Bytes = dropped.PerObject+d.PerObject, dropped.Count+d.Count, dropped.Bytes+d.Bytes
	}
	t.Run("in number", func(t *testing.T) {
		r, over := NewRecords(), 500
		dropped = Displaced{}
		for i := range defaultRecordBounds.count + over {
			add(r, recordOf(fmt.Sprint("uid-", i), fmt.Sprint(i)))
		}
		if want := (Displaced{Count: over}); dropped != want || r.order.Len() != defaultRecordBounds.count {
			t.Errorf("%d are kept, dropped are %+v", r.order.Len(), dropped)
		}
		if r.has(fmt.Sprint("uid-", over-1)) || !r.has(fmt.Sprint("uid-", over)) {
			t.Error("not the oldest made room")
		}
	})
	t.Run("in number of one object", func(t *testing.T) {
		r, most := NewRecords(), defaultRecordBounds.perUID
		dropped = Displaced{}
		add(r, recordOf("other", "o"))
		for i := range 3 * most {
			add(r, recordOf("hot", fmt.Sprint(i)))
		}
		hot := users(r.of("hot"))
		if len(hot) != most || hot[0] != fmt.Sprint(2*most) || hot[most-1] != fmt.Sprint(3*most-1) {
			t.Errorf("%d records of one object are kept, from %s to %s", len(hot), hot[0], hot[len(hot)-1])
		}
		if want := (Displaced{PerObject: 2 * most}); dropped != want || !r.has("other") {
			t.Errorf("dropped are %+v; the other object's is kept: %t", dropped, r.has("other"))
		}
	})
	t.Run("in bytes", func(t *testing.T) {
		r, total := NewRecords(), 6000
		dropped = Displaced{}
		for i := range total {
			add(r, large(i))
		}
		kept := r.order.Len()
		if want := (Displaced{Bytes: total - kept}); dropped != want || kept == total || r.bytes > defaultRecordBounds.bytes {
			t.Errorf("%d records of %d bytes are kept, dropped are %+v", kept, r.bytes, dropped)
		}
		if r.bytes < defaultRecordBounds.bytes-32<<10 {
			t.Errorf("%d bytes are kept, more would have had room", r.bytes)
		}
		if r.has(fmt.Sprint("uid-", total-kept-1)) || !r.has(fmt.Sprint("uid-", total-kept)) {
			t.Error("not the oldest made room")
		}
	})
	t.Run("one that has no room at all is dropped", func(t *testing.T) {
		r := newRecords(recordBounds{count: 10, perUID: 10, bytes: 4 << 10})
		r.Add(recordOf("a", "1"))
		if d := r.Add(large(0)); d != (Displaced{Bytes: 2}) || r.order.Len() != 0 || r.bytes != 0 {
			t.Errorf("dropped are %+v, %d bytes are kept", d, r.bytes)
		}
	})
}

// plain is the same index, as a list that is searched.
type plain struct {
	bounds recordBounds
	all    []specguard.WriteRecord
}

func (p *plain) add(record specguard.WriteRecord) (d Displaced) {
	p.all = append(p.all, record)
	if len(p.of(record.UID)) > p.bounds.perUID {
		first := slices.IndexFunc(p.all, func(r specguard.WriteRecord) bool { return r.UID == record.UID })
		p.all = slices.Delete(p.all, first, first+1)
		d.PerObject++
	}
	for len(p.all) > p.bounds.count {
		p.all = p.all[1:]
		d.Count++
	}
	for p.bytes() > p.bounds.bytes {
		p.all = p.all[1:]
		d.Bytes++
	}
	return d
}

func (p *plain) bytes() (sum int) {
	for i := range p.all {
		sum += sizeOf(&p.all[i])
	}
	return sum
}

func (p *plain) of(uid string) (users []string) {
	for _, r := range p.all {
		if r.UID == uid {
			users = append(users, r.User)
		}
	}
	return users
}

func (p *plain) consume(users []string) {
	p.all = slices.DeleteFunc(p.all, func(r specguard.WriteRecord) bool { return slices.Contains(users, r.User) })
}

func TestRecordsAgainstAPlainList(t *testing.T) {
	uids := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		bounds := recordBounds{
			count:  rapid.IntRange(1, 12).Draw(t, "count"),
			perUID: rapid.IntRange(1, 6).Draw(t, "per uid"),
			bytes:  rapid.IntRange(100, 12*entryBytes).Draw(t, "bytes"),
		}
		r, naive := newRecords(bounds), &plain{bounds: bounds}
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			uid := rapid.SampledFrom(uids).Draw(t, "uid")
			if rapid.IntRange(0, 3).Draw(t, "what") > 0 {
				record := recordOf(uid, fmt.Sprint(i))
				record.Fields = slices.Repeat([]string{"/spec/replicas"}, rapid.IntRange(0, 64).Draw(t, "fields"))
				if want, got := naive.add(record), r.Add(record); got != want {
					t.Fatalf("dropped are %+v, want %+v", got, want)
				}
			} else {
				j := r.of(uid)
				n := rapid.IntRange(0, len(j.records)).Draw(t, "joined")
				naive.consume(users(j)[:n])
				r.consume(j.from[:n])
			}
			for _, uid := range uids {
				if diff := cmp.Diff(naive.of(uid), users(r.of(uid))); diff != "" {
					t.Fatalf("records of %s (-want +got):\n%s", uid, diff)
				}
			}
			if r.bytes != naive.bytes() || r.order.Len() != len(naive.all) {
				t.Fatalf("%d records of %d bytes are kept, want %d of %d", r.order.Len(), r.bytes, len(naive.all), naive.bytes())
			}
		}
	})
}

// heap is what is in use once nothing is garbage.
func heap() int {
	runtime.GC()
	runtime.GC() // what finalizers and pools of the first round let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // a test does not use exabytes
}

// The estimate stands for real memory, or the bound in bytes is none.
func TestWhatRecordsTakeIsWhatIsEstimated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same at every run
	text := func(most int) string { return strings.Repeat("x", random.IntN(most)) }
	texts := func(count, most int) (out []string) {
		for range random.IntN(count + 1) {
			out = append(out, text(most))
		}
		return out
	}
	tests := map[string]func() specguard.WriteRecord{
		"of ordinary writes": func() specguard.WriteRecord { return write("") },
		"of long names": func() specguard.WriteRecord {
			return specguard.WriteRecord{Name: text(1 << 10), Namespace: text(1 << 10)}
		},
		"of many fields": func() specguard.WriteRecord { return specguard.WriteRecord{Fields: texts(64, 256)} },
		"of many groups": func() specguard.WriteRecord {
			return specguard.WriteRecord{Identity: specguard.Identity{Groups: texts(128, 32)}}
		},
		"whose lists were cut": func() specguard.WriteRecord {
			return specguard.WriteRecord{Identity: specguard.Identity{Groups: slices.Repeat([]string{"g"}, 1000)[:4:4]}}
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			r, before := NewRecords(), heap()
			for i := range 4000 {
				record := make()
				record.UID = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
				raw, err := json.Marshal(record)
				if err != nil {
					t.Fatal(err)
				}
				var decoded specguard.WriteRecord // shares no text with another, as those from the stream
				if err := json.Unmarshal(raw, &decoded); err != nil {
					t.Fatal(err)
				}
				if cap(record.Groups) == 4 {
					decoded.Groups = append(slices.Clone(decoded.Groups), strings.Split(strings.Repeat("cut off,", 1000), ",")...)[:4:4]
				}
				r.Add(decoded)
			}
			took := heap() - before
			t.Logf("%d records: %d bytes estimated, %d taken", r.order.Len(), r.bytes, took)
			if took > r.bytes*4/3 || took < r.bytes/2 {
				t.Errorf("%d bytes were estimated, %d are taken", r.bytes, took)
			}
			runtime.KeepAlive(r)
		})
	}
}

func TestDroppedRecordsAreCountedByReason(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	records := newRecords(recordBounds{count: 100, perUID: 2, bytes: 8 << 10})
	ingest := &Ingest{Reconciler: &Reconciler{Records: records, Metrics: metrics, memory: newMemory()}}
	counted := func() map[string]float64 {
		out := map[string]float64{}
		for _, reason := range []string{"per_object", "count", "bytes"} {
			out[reason] = testutil.ToFloat64(metrics.displaced.WithLabelValues(reason))
		}
		return out
	}
	if n := testutil.CollectAndCount(metrics.displaced); n != 3 {
		t.Errorf("%d reasons can be seen before anything was dropped", n)
	}
	var batch details.Batch
	for i := range 5 {
		batch.Entries = append(batch.Entries, details.Entry{Record: recordOf("hot", fmt.Sprint(i))})
	}
	ingest.take(batch)
	if diff := cmp.Diff(map[string]float64{"per_object": 3, "count": 0, "bytes": 0}, counted()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	ingest.take(details.Batch{Entries: []details.Entry{{Record: large(0)}}})
	if diff := cmp.Diff(map[string]float64{"per_object": 3, "count": 0, "bytes": 3}, counted()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	records.bounds = recordBounds{count: 1, perUID: 9, bytes: 1 << 20}
	ingest.take(details.Batch{Entries: []details.Entry{{Record: recordOf("a", "")}, {Record: recordOf("b", "")}}})
	if diff := cmp.Diff(map[string]float64{"per_object": 3, "count": 1, "bytes": 3}, counted()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}
