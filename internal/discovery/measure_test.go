// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// cellsOf is a replica with cells.
type cellsOf struct{ log signals.Log }

func (c *cellsOf) Cells(after signals.Position, limit int) ([]signals.Told, bool) {
	return c.log.After(after, limit)
}

func (c *cellsOf) add(epoch int64, number uint64, service string, sequence signals.Stratum, answers uint64) {
	cell := signals.Cell{Slot: signals.Slot{Namespace: "shop", Service: service, Port: 80, Variation: "canary"}, Start: begin, Stratum: sequence}
	cell.Counts[signals.Completed], cell.Counts[signals.Class4], cell.Counts[signals.Failed] = answers, 2, 1
	cell.Spread = signals.Spread{Proxies: 1, N: answers, X: 1}
	cell.Loudest, cell.Busiest = signals.Loud{ID: 4, N: answers, X: 1}, signals.Loud{ID: 5, N: answers}
	cell.Coverage.Telling = 3
	c.log.Add(signals.Position{Epoch: epoch, Number: number}, cell.Slot, cell.Start, cell.Encode())
}

func TestAServiceIsMeasuredFromWhereSomebodyHasRead(t *testing.T) {
	a, b := &cellsOf{}, &cellsOf{}
	a.add(1, 1, "web", signals.Stratum{Sequence: 7}, 10)
	a.add(1, 2, "other", signals.Stratum{Sequence: 9}, 10)
	a.add(1, 3, "web", signals.Stratum{Sequence: 45, Shared: true}, 20)
	b.add(5, 1, "web", signals.Stratum{Sequence: 12, Shared: true}, 30)
	applied := []acknowledged.Applied{{Sequence: 7, At: begin, Shared: 40}}
	parts := map[string]part{"a": a, "b": b}
	service := types.NamespacedName{Namespace: "shop", Name: "web"}

	first := read(service, applied, parts, nil)
	var got []uint64
	for _, c := range first.Cells {
		got = append(got, c.Over, c.Sequence)
	}
	if d := cmp.Diff([]uint64{10, 7, 20, 7, 30, 0}, got); d != "" {
		t.Errorf("requests and sequences (-want +got):\n%s", d)
	}
	next := traffic.Cursor{"a": {Epoch: 1, Cell: 3}, "b": {Epoch: 5, Cell: 1}}
	if d := cmp.Diff(next, first.Next); d != "" || len(first.Lost) > 0 {
		t.Errorf("lost are %v, and the cursor (-want +got):\n%s", first.Lost, d)
	}
	want := traffic.Cell{
		Part: "b", Position: traffic.Position{Epoch: 5, Cell: 1}, Variation: "canary", Port: 80, Start: time.Unix(0, begin.UnixNano()), Over: 30, Failed: 1, ClientErrors: 2,
		Latency: make([]uint64, signals.Buckets), Spread: traffic.Spread{Proxies: 1, N: 30, X: 1}, Coverage: traffic.Coverage{Telling: 3},
		Loudest: traffic.Reporter{ID: 4, N: 30, X: 1}, Busiest: traffic.Reporter{ID: 5, N: 30},
	}
	if d := cmp.Diff(want, first.Cells[2]); d != "" {
		t.Errorf("the cell (-want +got):\n%s", d)
	}
	if again := read(service, applied, parts, next); len(again.Cells) > 0 || cmp.Diff(next, again.Next) != "" {
		t.Errorf("again there is %+v", again)
	}
	next["gone"] = traffic.Position{Epoch: 3, Cell: 3}
	b.add(8, 1, "web", signals.Stratum{}, 40) // it was started again
	last := read(service, applied, parts, next)
	if d := cmp.Diff([]string{"b", "gone"}, last.Lost); d != "" || len(last.Cells) != 1 || last.Cells[0].Over != 40 {
		t.Errorf("the cells are %+v, and lost (-want +got):\n%s", last.Cells, d)
	}
}
