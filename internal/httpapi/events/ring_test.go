// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func entry(second int64, number int) Entry { return Entry{ID: ID{second, "uid", fmt.Sprint(number)}} }

// naive keeps all events.
type naive struct {
	all  []Message
	size int
}

func (n *naive) tail() int { return max(0, len(n.all)-n.size) }

func (n *naive) read(place uint64, limit int) ([]Message, uint64, bool) {
	if int(place) < n.tail() { //nolint:gosec // few
		return nil, uint64(len(n.all)), true
	}
	end := min(len(n.all), int(place)+limit) //nolint:gosec // few
	return slices.Clone(n.all[place:end]), uint64(end), false
}

func (n *naive) resume(last ID) (uint64, bool) {
	for _, e := range n.all[:n.tail()] {
		if e.ID.Second >= last.Second-Margin {
			return uint64(len(n.all)), false
		}
	}
	for i := n.tail(); i < len(n.all); i++ {
		if n.all[i].ID.Second >= last.Second-Margin {
			return uint64(i), true
		}
	}
	return uint64(len(n.all)), true
}

func TestARingReadsAsOneThatKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &naive{size: rapid.IntRange(1, 5).Draw(t, "size")}
		r := NewRing(n.size)
		for i := range rapid.IntRange(0, 20).Draw(t, "events") {
			e := entry(int64(rapid.IntRange(0, 300).Draw(t, "second")), i)
			n.all = append(n.all, newMessage(&e))
			r.Append(e)
			if r.Head() != uint64(len(n.all)) {
				t.Fatalf("the head is %d", r.Head())
			}
			place, limit := uint64(rapid.IntRange(0, len(n.all)).Draw(t, "place")), rapid.IntRange(1, 4).Draw(t, "limit") //nolint:gosec // few
			read, next, lapped := r.Read(place, limit)
			wantRead, wantNext, wantLapped := n.read(place, limit)
			if diff := cmp.Diff(wantRead, read); diff != "" && len(wantRead)+len(read) > 0 || next != wantNext || lapped != wantLapped {
				t.Fatalf("from %d: next %d, lapped %v; want %d, %v (-want +got):\n%s", place, next, lapped, wantNext, wantLapped, diff)
			}
			last := ID{Second: int64(rapid.IntRange(0, 400).Draw(t, "since"))}
			got, ok := r.Resume(last)
			if want, wantOK := n.resume(last); got != want || ok != wantOK {
				t.Fatalf("since %d the place is %d, %v; want %d, %v", last.Second, got, ok, want, wantOK)
			}
		}
	})
}

// A subscriber of one replica goes on at another one, which has seen the objects in another order.
func TestNoEventIsLostBetweenReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := int64(1000)
		var all []Entry
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			second += int64(rapid.IntRange(0, 50).Draw(t, "later"))
			all = append(all, Entry{ID: ID{second, fmt.Sprint("object-", i), "0"}})
		}
		// Each replica tells an event at most Margin seconds late.
		late := func(label string) []Entry {
			order := map[ID]int64{}
			for i := range all {
				order[all[i].ID] = all[i].ID.Second + int64(rapid.IntRange(0, Margin).Draw(t, label))
			}
			sorted := slices.Clone(all)
			slices.SortStableFunc(sorted, func(x, y Entry) int { return int(order[x.ID] - order[y.ID]) })
			return sorted
		}
		one, other := late("one"), NewRing(100)
		other.Append(late("other")...)
		read := rapid.IntRange(1, len(one)).Draw(t, "read")
		got := map[ID]bool{}
		for i := range one[:read] {
			got[one[i].ID] = true
		}
		place, ok := other.Resume(one[read-1].ID)
		rest, _, lapped := other.Read(place, 100)
		if !ok || lapped {
			t.Fatalf("resumed: %v, lapped: %v", ok, lapped)
		}
		for i := range rest {
			got[rest[i].ID] = true
		}
		if len(got) != len(all) {
			t.Fatalf("%d of %d events came: %v, then %v", len(got), len(all), one[:read], rest)
		}
	})
}

func TestMergeKeepsTheOrderOfEachObject(t *testing.T) {
	got := Merge([][]Entry{{entry(5, 1), entry(3, 2), entry(9, 3)}, nil, {entry(4, 4), entry(5, 5)}})
	var places []string
	for i := range got {
		places = append(places, got[i].ID.Place)
	}
	if diff := cmp.Diff([]string{"4", "1", "2", "5", "3"}, places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseID(t *testing.T) {
	tests := map[string]bool{
		"1772366400.2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c.3": true, "0.u.not_ready": true,
		"": false, "1": false, "1.u": false, "1.u.": false, "1.u.A": false, "01.u.0": false, "-1.u.0": false, "1..0": false, "1.u.0\n": false, "1.u.0.0": false,
		"1234567890123.u.0": false, "1.ü.0": false,
	}
	for text, want := range tests {
		id, err := ParseID(text)
		if (err == nil) != want || want && id.String() != text {
			t.Errorf("%q is read as %v (%v)", text, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{"1772366400.2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c.3", "1.u.not_ready", "01.u.0", "1.u.0\n", ".."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err != nil {
			return
		}
		if id.String() != text || id.Second < 0 || len(text) > maxID {
			t.Errorf("%q is read as %+v, and written as %q", text, id, id.String())
		}
	})
}
