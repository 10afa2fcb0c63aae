// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// counter closes a cell whenever a test says so.
type counter struct {
	mu    sync.Mutex
	epoch time.Time
	log   signals.Log
}

func (c *counter) Epoch() time.Time { return c.epoch }

func (c *counter) Cells(after signals.Position, limit int) ([]signals.Told, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.After(after, limit)
}

func closedCell(n uint64) signals.Cell {
	c := signals.Cell{Slot: signals.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}, Start: now.Add(time.Duration(n) * signals.Width)} //nolint:gosec // small
	c.Counts[signals.Completed] = n
	c.Loudest, c.Busiest = signals.Loud{ID: n, N: n, X: 1}, signals.Loud{ID: n + 1, N: n}
	return c
}

func (c *counter) close(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cell := closedCell(n)
	c.log.Add(signals.Position{Epoch: c.epoch.UnixNano(), Number: n}, cell.Slot, cell.Start, cell.Encode())
}

func (c *counter) wait(t *testing.T, m *peers.Mirror, n uint64) {
	t.Helper()
	poll.Until(t, patience, "the cells are told", func() error {
		if last := m.Last(); last != (signals.Position{Epoch: c.epoch.UnixNano(), Number: n}) {
			return fmt.Errorf("the last is %v, want %d", last, n)
		}
		return nil
	})
}

// A stream that breaks begins again where it was, and a replica that was started again with
// another epoch: no cell is lost or told twice.
func TestCellsAreToldOnceWhateverBreaks(t *testing.T) {
	c := &counter{epoch: now}
	for n := range uint64(5_000) { // more than are told at once
		c.close(n + 1)
	}
	ending := make(chan struct{})
	count := func() []peers.Count { return nil }
	server := peers.NewServer(acknowledged.NewIndex(), count, guard("word"), ending).Counts(c)
	address, roots := replica(t, server)
	m, f := follow(t, address, "word", "127.0.0.1", roots)
	c.wait(t, m, 5_000)
	c.close(5_001)
	c.wait(t, m, 5_001)
	close(ending) // each stream from here on ends after what there is
	poll.Until(t, patience, "the stream ends", f.says("this replica ends"))
	c.close(5_002)
	c.wait(t, m, 5_002)
	cells, lost := m.Cells(signals.Position{}, 10_000)
	if lost || len(cells) != 5_002 {
		t.Fatalf("%d cells are told, lost %v", len(cells), lost)
	}
	for i, told := range cells {
		cell, err := signals.DecodeCell(told.Data)
		if err != nil || told.Number != uint64(i)+1 || cell.Counts[signals.Completed] != told.Number { //nolint:gosec // an index
			t.Fatalf("cell %d is %+v, %v", i, told, err)
		}
	}
}

func TestCellsThatAreToldWronglyAreNotTaken(t *testing.T) {
	encoded := func(n uint64) peers.Cell {
		c := closedCell(n)
		return peers.Cell{Number: n, Data: c.Encode()}
	}
	for name, tc := range map[string]struct {
		cells []peers.Cell
		want  string
	}{
		"one twice":           {[]peers.Cell{encoded(1), encoded(1)}, "cell 1 of epoch"},
		"an earlier one":      {[]peers.Cell{encoded(7), encoded(3)}, "cell 3 of epoch"},
		"one without a start": {[]peers.Cell{{Number: 1}}, "no namespace"},
		"one that is none":    {[]peers.Cell{{Number: 1, Data: []byte{0xff}}}, "malformed cell"},
	} {
		t.Run(name, func(t *testing.T) {
			m := peers.NewMirror()
			m.Begin()
			u := &peers.Update{Number: 1, Complete: true, Now: now, Epoch: now, Cells: tc.cells}
			if err := m.Take(u, now); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestAQuestionIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := peers.Question{Aged: rapid.Bool().Draw(t, "aged"), Cell: rapid.Uint64().Draw(t, "cell")}
		if q.Aged {
			q.Age = time.Duration(rapid.IntRange(0, 1_000_000).Draw(t, "age")) * time.Millisecond
		}
		if rapid.Bool().Draw(t, "resumes") {
			q.Epoch = time.Unix(0, rapid.Int64Range(1, 1<<60).Draw(t, "epoch"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "orders") {
			q.Orders = append(q.Orders, peers.Order{Release: rapid.StringN(0, 40, 160).Draw(t, "release"), Sequence: rapid.Uint64().Draw(t, "sequence")})
		}
		var got peers.Question
		if err := got.Decode(q.Encode()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(q, got); d != "" {
			t.Errorf("the question (-want +got):\n%s", d)
		}
	})
}

func FuzzQuestion(f *testing.F) {
	f.Add((&peers.Question{Aged: true, Age: time.Second, Epoch: now, Cell: 7}).Encode())
	f.Add((&peers.Question{Orders: []peers.Order{{Release: "u1", Sequence: 8}}}).Encode())
	f.Add([]byte{0x08})
	f.Fuzz(func(t *testing.T, data []byte) {
		var q, again peers.Question
		if q.Decode(data) != nil {
			return
		}
		if err := again.Decode(q.Encode()); err != nil || !bytes.Equal(again.Encode(), q.Encode()) {
			t.Errorf("%+v is read again as %+v, %v", q, again, err)
		}
	})
}

// Whoever is followed is told how old the watches of its follower are (M7).
func TestAReplicaIsToldHowOldTheWatchesOfTheLeaderAre(t *testing.T) {
	told := make(chan time.Duration, 1)
	server := peers.NewServer(acknowledged.NewIndex(), func() []peers.Count { return nil }, guard("word"), nil).Tells(func(age time.Duration) {
		select {
		case told <- age:
		default:
		}
	})
	address, roots := replica(t, server)
	followAged(t, address, "word", "127.0.0.1", roots, func() time.Duration { return 7 * time.Second })
	for range 2 { // with the first question, and later ones
		if got := poll.Receive(t, patience, "an age is told", told); got != 7*time.Second {
			t.Errorf("the age is %s", got)
		}
	}
}

// An order reaches a replica at once, and one that was given before the stream began with the first
// question.
func TestAReplicaIsToldOrders(t *testing.T) {
	var mu sync.Mutex
	given, added := []peers.Order{{Release: "u1", Sequence: 8}}, make(chan struct{})
	orders := func() []peers.Order { mu.Lock(); defer mu.Unlock(); return given }
	changed := func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return added }
	told := make(chan []peers.Order, 100)
	server := peers.NewServer(acknowledged.NewIndex(), func() []peers.Count { return nil }, guard("word"), nil).Obeys(func(o []peers.Order) { told <- o })
	address, roots := replica(t, server)
	followOrders(t, address, "word", "127.0.0.1", roots, nil, orders, changed)
	if d := cmp.Diff(given, poll.Receive(t, patience, "an order of before is told", told)); d != "" {
		t.Errorf("the orders (-want +got):\n%s", d)
	}
	mu.Lock()
	given = append(given, peers.Order{Release: "u2", Sequence: 3})
	close(added)
	added = make(chan struct{})
	mu.Unlock()
	poll.Until(t, patience, "the other order is told as well", func() error {
		if got := poll.Receive(t, patience, "orders are told", told); !cmp.Equal(got, given) {
			return fmt.Errorf("the orders are %v", got)
		}
		return nil
	})
}

func TestAQuestionWithTooManyOrdersIsRefused(t *testing.T) {
	order := (&peers.Question{Orders: []peers.Order{{Release: "u1", Sequence: 8}}}).Encode()
	var q peers.Question
	if err := q.Decode(bytes.Repeat(order, 1001)); err == nil || !strings.Contains(err.Error(), "more than 1000 orders") {
		t.Errorf("the error is %v", err)
	}
}
