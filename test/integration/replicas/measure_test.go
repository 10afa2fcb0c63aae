// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicas

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Of two proxies each has another replica. The leader has the cells of both, each once, in the
// sequence that the proxies had acknowledged.
func TestTheLeaderMeasuresWhatProxiesOfAllReplicasCount(t *testing.T) {
	w := newWorld(t)
	fronts := []string{w.counting("front-0", w.leader), w.counting("front-1", w.other)}
	router := w.decide(1, 5000)
	w.seen(router, "it is acknowledged", proven(1, 2))
	want := map[string]uint64{}
	ask := func(prefix string) {
		for i, front := range fronts {
			for variation, n := range w.answers(front, fmt.Sprint(prefix, i), 50) {
				want[variation] += n
			}
		}
	}
	got, parts := map[string]uint64{}, map[string]bool{}
	var cursor traffic.Cursor
	measured := func() {
		t.Helper()
		poll.Until(t, patience, "the cells of both replicas are told", func() error {
			m, err := router.Measure(t.Context(), cursor)
			if err != nil {
				return err
			}
			cursor = m.Next
			for _, c := range m.Cells {
				got[c.Variation] += c.Over
				parts[c.Part] = true
				if c.Sequence > 1 || c.Spread.N != c.Over || c.Failed > 0 || c.Coverage.Telling > 1 || c.From.After(c.To) {
					t.Fatalf("a cell is %+v", c)
				}
			}
			if len(m.Lost) > 0 || len(m.Unheard) > 0 || m.Wanted != 2 {
				t.Fatalf("lost are %v, unheard %v, and %d have to tell", m.Lost, m.Unheard, m.Wanted)
			}
			if d := cmp.Diff(want, got); d != "" {
				return fmt.Errorf("the requests (-want +got):\n%s", d)
			}
			return nil
		})
	}
	ask("a")
	measured()
	ask("b")
	measured()
	if len(parts) != 2 {
		t.Errorf("the cells are those of %v", parts)
	}
	again, err := router.Measure(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for _, c := range again.Cells {
		sum += c.Over
	}
	if all := want["stable"] + want["canary"]; sum != all {
		t.Errorf("from the beginning there are %d requests, want %d", sum, all)
	}
}
