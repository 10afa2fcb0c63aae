// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// counts are the checks of routers that count.
func counts() []check {
	counted := func(m Maker, s Stand) bool {
		_, is := s.(Counter)
		return is && m.Capabilities.Outcomes
	}
	held := func(m Maker, s Stand) bool {
		_, is := s.(Holder)
		return is && m.Capabilities.InFlight
	}
	forced := func(m Maker, s Stand) bool { return counted(m, s) && m.Capabilities.Override }
	return []check{
		{"requests are counted as their clients count them, and each is told once", counted, testCounts},
		{"a count belongs to the sequence that decided its requests", counted, testCountedSequence},
		{"a request that an override sends is in no count", forced, testForcedUncounted},
		{"requests in flight are counted until they end, whatever the split becomes", held, testInFlight},
	}
}

// outcomes of the requests that one variation got.
type outcomes struct{ Over, Failed uint64 }

// sends asks for requests of which each fifth fails, and counts as their clients do.
func (b *bench) sends() map[string]outcomes {
	b.Helper()
	sent := map[string]outcomes{}
	for i := range crowd {
		r := Request{Service: web, Fails: i%5 == 0}
		to := b.askFor(r).Variation.Name
		o := sent[to]
		if o.Over++; r.Fails {
			o.Failed++
		}
		sent[to] = o
	}
	return sent
}

// measures reads all cells after a cursor.
func (b *bench) measures(since traffic.Cursor) ([]traffic.Cell, traffic.Cursor) {
	b.Helper()
	b.stand.(Counter).Flush() //nolint:forcetypeassert // the check fits Counters alone
	var cells []traffic.Cell
	for range 1_000 {
		m, err := b.router().Measure(b.Context(), since)
		if err != nil {
			b.Fatal(err)
		}
		if len(m.Lost)+len(m.Unheard) > 0 {
			b.Fatalf("cells of %v are lost, and %v are not heard", m.Lost, m.Unheard)
		}
		if cells, since = append(cells, m.Cells...), m.Next; !m.More {
			return cells, since
		}
	}
	b.Fatal("a measurement has no end")
	return nil, nil
}

func sum(cells []traffic.Cell) map[string]outcomes {
	sums := map[string]outcomes{}
	for _, c := range cells {
		o := sums[c.Variation]
		sums[c.Variation] = outcomes{o.Over + c.Over, o.Failed + c.Failed}
	}
	return sums
}

func testCounts(b *bench) {
	b.apply(b.split(1, 3_000))
	var at traffic.Cursor
	for range 2 {
		sent := b.sends()
		var cells []traffic.Cell
		if cells, at = b.measures(at); cmp.Diff(sent, sum(cells)) != "" {
			b.Errorf("counts (-clients +router):\n%s", cmp.Diff(sent, sum(cells)))
		}
		if cells, at = b.measures(at); len(sum(cells)) > 0 {
			b.Errorf("told again are %v", sum(cells))
		}
	}
}

func testCountedSequence(b *bench) {
	b.apply(b.split(1, 0))
	sent := b.sends()["stable"].Over
	b.apply(b.split(2, traffic.Total))
	sent += b.sends()["canary"].Over
	var over uint64
	cells, _ := b.measures(nil)
	for _, c := range cells {
		over += c.Over
		if c.Over > 0 && (c.Sequence == 1 && c.Variation != "stable" || c.Sequence == 2 && c.Variation != "canary" || c.Sequence > 2) {
			b.Errorf("%d requests to %s count to sequence %d", c.Over, c.Variation, c.Sequence)
		}
	}
	if over != sent {
		b.Errorf("%d requests are counted, and %d were sent", over, sent)
	}
}

func testForcedUncounted(b *bench) {
	split := b.split(1, 0)
	split.Override = "x-variation"
	b.apply(split)
	for range 10 {
		b.goes("a header that names the canary", map[string]string{"X-Variation": "canary"}, "canary")
	}
	if cells, _ := b.measures(nil); sum(cells)["canary"].Over > 0 {
		b.Errorf("counted are %v, and the canary has no share", sum(cells))
	}
}

func testInFlight(b *bench) {
	stand := b.stand.(Holder) //nolint:forcetypeassert // the check fits Holders alone
	b.apply(b.split(1, 0))
	b.inFlight(0)
	var ends []func()
	for range 3 {
		to, end, err := stand.Hold(Request{Service: web})
		if err != nil || to.Variation.Name != "stable" {
			b.Fatalf("a request goes to %q: %v", to.Variation.Name, err)
		}
		ends = append(ends, end)
	}
	b.inFlight(3)
	b.apply(b.split(2, traffic.Total))
	b.inFlight(3)
	for i, end := range ends {
		end()
		b.inFlight(int64(2 - i))
	}
}

// inFlight demands how many requests of the stable variation have no answer.
func (b *bench) inFlight(want int64) {
	b.Helper()
	b.stand.(Holder).Flush() //nolint:forcetypeassert // as above
	for _, arm := range b.observed().Arms {
		if arm.Variation == "stable" && arm.Outcomes != nil && arm.Outcomes.InFlight == want {
			return
		}
	}
	b.Errorf("observed is %+v, want %d requests in flight at stable", b.observed().Arms, want)
}
