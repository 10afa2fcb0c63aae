// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes ten times as long.
//go:build !race

package evidence_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// TestOpen_EveryByteCounts flips every bit of an envelope, one at a time.
func TestOpen_EveryByteCounts(t *testing.T) {
	k := key(t, 1)
	ring := keyring(t, k)
	sealed := seal(t, k, placed(step(0), 1, ""))
	for i := range sealed.Envelope {
		for bit := range 8 {
			altered := bytes.Clone(sealed.Envelope)
			altered[i] ^= 1 << bit
			if _, err := evidence.Open(ring, altered); faultOf(err) == "" {
				t.Fatalf("byte %d, bit %d: %q in place of %q was not noticed: %v", i, bit, altered[i], sealed.Envelope[i], err)
			}
		}
	}
}

// Whoever moves the head on without end displaces no checkpoint of before, but by time.
func TestManyHeadsDisplaceNoEarlierCheckpoint(t *testing.T) {
	points, n := []evidence.Checkpoint{point(1, noon)}, int64(1)
	holds := func(at time.Time) bool {
		return slices.ContainsFunc(points, func(p evidence.Checkpoint) bool { return p.At.Equal(at) })
	}
	for now := noon; now.Before(noon.Add(40 * 24 * time.Hour)); now = now.Add(time.Minute) {
		n++
		points = evidence.AddCheckpoint(points, point(n, now).Head, now)
		if age := now.Sub(noon); age <= 30*24*time.Hour && !holds(noon) {
			t.Fatalf("the first checkpoint is gone after %s", age)
		}
	}
	if holds(noon) {
		t.Error("the first checkpoint stays for ever")
	}
	if len(points) > 12+24+31+2 || points[len(points)-1].Sequence != n {
		t.Errorf("%d checkpoints stay, the last one at %d", len(points), points[len(points)-1].Sequence)
	}
}

// twin is the naive chain: the events in order.
type twin struct{ events []string }

// TestAppend_LikeTheNaiveChain: two writers with heads of their own, answers
// that are lost and heads that are not kept. Whatever happens, the store holds
// each event once, in one chain that verifies, and every event that a writer was
// told is there is there.
func TestAppend_LikeTheNaiveChain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := &storetest.Memory{}
		writers := []evidence.Writer{writer(t, store, 1), writer(t, store, 1)}
		heads := make([]evidence.Head, len(writers))
		naive := twin{}
		for i := range rapid.IntRange(1, 25).Draw(rt, "actions") {
			who := rapid.IntRange(0, len(writers)-1).Draw(rt, "who")
			fault := rapid.SampledFrom([]string{"", "", storetest.BeforeCreate, storetest.AfterCreate}).Draw(rt, "fault")
			store.Fault = func(op string) error {
				if op == fault {
					return errors.New("lost")
				}
				return nil
			}
			r := step(int32(i))
			s, err := writers[who].Append(t.Context(), heads[who], r)
			store.Fault = nil
			switch taken := (*evidence.TakenError)(nil); {
			case errors.As(err, &taken):
				if int(heads[who].Sequence) >= len(naive.events) {
					rt.Fatalf("taken, and nothing is there: %v", err)
				}
				tail, _, err := writers[who].CatchUp(t.Context(), policyUID, heads[who], nil)
				if err != nil {
					rt.Fatal(err)
				}
				heads[who] = tail.Head
				if heads[who].Sequence != int64(len(naive.events)) {
					rt.Fatalf("caught up to %d of %d", heads[who].Sequence, len(naive.events))
				}
				if s, err = writers[who].Append(t.Context(), heads[who], r); err != nil {
					rt.Fatal(err)
				}
				naive.events = append(naive.events, r.ID())
			case err != nil:
				if fault == storetest.AfterCreate && int(heads[who].Sequence) == len(naive.events) {
					naive.events = append(naive.events, r.ID())
				}
				continue // the head is not kept, the event is lost or caught up with
			default:
				naive.events = append(naive.events, r.ID())
			}
			if rapid.Bool().Draw(rt, "kept") {
				heads[who] = s.Head()
			}
		}
		checkTwin(rt, t, store, naive)
	})
}

func checkTwin(rt *rapid.T, t *testing.T, store *storetest.Memory, naive twin) {
	var events []string
	report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1), key(t, 2)),
		evidence.Options{Each: func(s evidence.Sealed) { events = append(events, s.Record.ID()) }})
	if err != nil {
		rt.Fatal(err)
	}
	if !report.OK() {
		rt.Fatalf("%v", report.Problems)
	}
	if fmt.Sprint(events) != fmt.Sprint(naive.events) {
		rt.Fatalf("the store tells %v, want %v", events, naive.events)
	}
}

// TestVerify_NoTamperingGoesUnseen: whatever somebody who can write to the store
// does to one record, the report names that one first.
func TestVerify_NoTamperingGoesUnseen(t *testing.T) {
	const n = 5
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.IntRange(0, n).Draw(rt, "rotated from")
		store, sealed := chain(t, n, from)
		i := rapid.IntRange(0, n-1).Draw(rt, "record")
		data := bytes.Clone(sealed[i].Envelope)
		at := rapid.IntRange(0, len(data)-1).Draw(rt, "byte")
		switch rapid.SampledFrom([]string{"flip", "cut", "grow", "remove", "swap"}).Draw(rt, "attack") {
		case "flip":
			data[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			store.Put(sealed[i].Name, data)
		case "cut":
			store.Put(sealed[i].Name, data[:at])
		case "grow":
			store.Put(sealed[i].Name, append(data, data[:at+1]...))
		case "remove":
			store.Remove(sealed[i].Name)
		case "swap":
			other := (i + 1 + rapid.IntRange(0, n-2).Draw(rt, "other")) % n
			store.Put(sealed[other].Name, sealed[i].Envelope)
			store.Put(sealed[i].Name, sealed[other].Envelope)
			i = min(i, other)
		}
		report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1), key(t, 2)),
			evidence.Options{Heads: map[string]evidence.Head{policyUID: sealed[n-1].Head()}, Ends: rotated(t, from)})
		if err != nil {
			rt.Fatal(err)
		}
		first, found := report.First()
		if !found || first.Sequence != int64(i+1) {
			rt.Fatalf("record %d was altered, and the first problem is %v", i+1, first)
		}
	})
}
