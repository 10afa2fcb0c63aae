// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// cells that have closed by so many seconds after noon.
func (w world) cells(seconds float64) (cells []Cell) {
	w.t.Helper()
	told, lost := w.Cells(Position{}, 1_000_000, at(seconds))
	if lost {
		w.t.Fatal("some are lost")
	}
	for _, one := range told {
		c, err := DecodeCell(one.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		cells = append(cells, c)
	}
	return cells
}

// under has a proxy tell of the canary under a sequence.
func (w world) under(uid string, seconds float64, sequence uint64, numbers map[Counter]uint64) {
	w.Report(uid, Flush{At: at(seconds), Slots: []Reported{{Slot: canary, Counts: of(numbers), Stratum: Stratum{Sequence: sequence}}}}, at(seconds))
}

func TestACellIsTheSumOfItsProxiesByWhatTheyHadAcknowledged(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.open("b", 0)
	fails := func(n, failed uint64) map[Counter]uint64 {
		return map[Counter]uint64{Started: n, Completed: n, Class2: n - failed, Class5: failed}
	}
	for _, seconds := range []float64{1, 11, 21} { // b follows later
		w.under("a", seconds, 7, fails(10, 1))
		w.under("b", seconds+1, 6+uint64(seconds)/20, fails(4, 2))
	}
	got := w.cells(30)
	both := Coverage{Expected: 2, Telling: 2}
	counts := func(n, failed uint64) Counts { c := of(fails(n, failed)); c[Failed] = failed; return c }
	a, b := Loud{idOf("a"), 10, 1}, Loud{idOf("b"), 4, 2}
	want := []Cell{
		// Since when the first flush of a proxy tells what it does is not known.
		{Slot: canary, Start: at(0), From: at(-9), To: at(2), Counts: counts(14, 3), Spread: Spread{2, 14, 3, 116, 18, 5}, Loudest: b, Busiest: a, Coverage: both},
		{Slot: canary, Start: at(10), From: at(1), To: at(11), Stratum: Stratum{Sequence: 7}, Counts: counts(10, 1), Spread: Spread{1, 10, 1, 100, 10, 1}, Loudest: a, Busiest: a, Coverage: both},
		{Slot: canary, Start: at(10), From: at(2), To: at(12), Stratum: Stratum{Sequence: 6}, Counts: counts(4, 2), Spread: Spread{1, 4, 2, 16, 8, 4}, Loudest: b, Busiest: b, Coverage: both},
		{Slot: canary, Start: at(20), From: at(11), To: at(21), Stratum: Stratum{Sequence: 7}, Counts: counts(10, 1), Spread: Spread{1, 10, 1, 100, 10, 1}, Loudest: a, Busiest: a, Coverage: both},
		// Its sequence changed in the meantime, so what it tells is of neither.
		{Slot: canary, Start: at(20), From: at(12), To: at(22), Counts: counts(4, 2), Spread: Spread{1, 4, 2, 16, 8, 4}, Loudest: b, Busiest: b, Coverage: both},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the cells (-want +got):\n%s", d)
	}
}

func TestACellSaysWhoIsMissing(t *testing.T) {
	w := newWorld(t, Config{SlotsOfProxy: 1})
	for _, uid := range []string{"talks", "falls silent", "is lost for a while", "has no room", "ends"} {
		w.open(uid, 0)
		if uid != "has no room" {
			w.under(uid, 1, 7, answers(1))
		}
	}
	w.tell("has no room", 1, stable, 0, answers(1))
	w.Close("is lost for a while", at(2))
	w.End("ends", at(12))
	for _, seconds := range []float64{11, 21, 31, 41} {
		w.under("talks", seconds, 7, answers(1))
		w.under("has no room", seconds, 7, answers(1))
	}
	w.open("is lost for a while", 42)
	w.under("is lost for a while", 43, 7, answers(1))
	var last Cell
	for _, c := range w.cells(50) {
		if c.Slot == canary {
			last = c
		}
	}
	if d := cmp.Diff(Coverage{Expected: 3, Telling: 2, Silent: 1, Gapped: 1, Refused: 1}, last.Coverage); d != "" {
		t.Errorf("the proxies of the last cell (-want +got):\n%s", d)
	}
}

// What clients told is in the cells of all replicas together, once, whatever proxies go from one
// to another, and however whoever reads the cells begins again where it was.
func TestCellsAreWhatProxiesToldWhoeverTakesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := []*Accumulator{New(Config{}), New(Config{}), New(Config{})}
		cursors := make([]Position, len(replicas))
		read := map[string]Counts{}
		proxies := rapid.IntRange(1, 4).Draw(t, "proxies")
		where := make([]int, proxies)
		for i := range proxies {
			replicas[0].Open(Proxy{UID: fmt.Sprint(i)}, noon)
		}
		want := map[string]Counts{}
		now := noon
		take := func(which, limit int) (n int) {
			cells, lost := replicas[which].Cells(cursors[which], limit, now)
			if lost {
				t.Fatal("some are lost")
			}
			for _, told := range cells {
				c, err := DecodeCell(told.Data)
				if err != nil {
					t.Fatal(err)
				}
				if told.Number != cursors[which].Number+1 {
					t.Fatalf("cell %d follows %d", told.Number, cursors[which].Number)
				}
				sum := read[c.Variation]
				sum.Add(&c.Counts)
				read[c.Variation], cursors[which] = sum, told.Position
				if over, failed := c.Counts.Outcomes(); c.Spread.N < over || c.Spread.X > c.Spread.N || c.Spread.X > failed {
					t.Fatalf("of %d requests %d failed, and the sums over proxies are %+v", over, failed, c.Spread)
				}
			}
			return len(cells)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "passed")) * time.Millisecond)
			who := rapid.IntRange(0, proxies-1).Draw(t, "who")
			uid := fmt.Sprint(who)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				replicas[where[who]].Close(uid, now)
				where[who] = rapid.IntRange(0, len(replicas)-1).Draw(t, "to")
				replicas[where[who]].Open(Proxy{UID: uid}, now)
			case 1:
				take(rapid.IntRange(0, len(replicas)-1).Draw(t, "read"), rapid.IntRange(0, 5).Draw(t, "limit"))
			default:
				told := Reported{Slot: rapid.SampledFrom([]Slot{stable, canary}).Draw(t, "slot"), Stratum: Stratum{Sequence: rapid.Uint64Range(0, 2).Draw(t, "sequence")}}
				n := rapid.Uint64Range(0, 9).Draw(t, "requests")
				told.Counts[Started], told.Counts[Completed], told.Counts[Class4] = n, n, n
				told.Counts.Latency()[3] = n
				sum := want[told.Slot.Variation]
				sum.Add(&told.Counts)
				want[told.Slot.Variation] = sum
				replicas[where[who]].Report(uid, Flush{At: now, Slots: []Reported{told}}, now)
			}
		}
		now = now.Add(Width)
		for i := range replicas {
			for take(i, 7) > 0 {
			}
		}
		for _, name := range []string{"stable", "canary"} {
			if d := cmp.Diff(want[name], read[name]); d != "" {
				t.Fatalf("%s (-told +read):\n%s", name, d)
			}
		}
	})
}

func TestALogTellsWhatItHasNot(t *testing.T) {
	var l Log
	for _, p := range []Position{{1, 4}, {1, 5}, {2, 1}, {2, 2}} { // the first three of epoch 1 are gone
		l.Add(p, canary, noon, []byte{byte(p.Number)})
	}
	for name, tc := range map[string]struct {
		after Position
		limit int
		want  []Position
		lost  bool
	}{
		"all, of which the first are gone":             {Position{}, 9, []Position{{1, 4}, {1, 5}, {2, 1}, {2, 2}}, true},
		"those after one that is there":                {Position{1, 4}, 9, []Position{{1, 5}, {2, 1}, {2, 2}}, false},
		"so many at most":                              {Position{1, 4}, 1, []Position{{1, 5}}, false},
		"those after the last before the rest":         {Position{1, 3}, 1, []Position{{1, 4}}, false},
		"those after one that is gone":                 {Position{1, 2}, 1, []Position{{1, 4}}, true},
		"another epoch, the end of which is not known": {Position{1, 5}, 9, []Position{{2, 1}, {2, 2}}, true},
		"none after the last":                          {Position{2, 2}, 9, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			cells, lost := l.After(tc.after, tc.limit)
			var got []Position
			for _, c := range cells {
				got = append(got, c.Position)
			}
			if d := cmp.Diff(tc.want, got); d != "" || lost != tc.lost {
				t.Errorf("lost is %v (-want +got):\n%s", lost, d)
			}
		})
	}
}

func TestALogIsBounded(t *testing.T) {
	var l Log
	for i := range uint64(300) {
		l.Add(Position{1, i + 1}, canary, at(float64(10*i)), make([]byte, 1<<20))
	}
	if n := len(l.cells); n < 60 || n > 64 || l.bytes > maxLog {
		t.Errorf("%d cells of a mebibyte stay, %d bytes", n, l.bytes)
	}
	l.forget(at(2_980))
	if first := l.cells[0].Number; first != 299 {
		t.Errorf("the oldest is %d, want 299", first)
	}
}

func TestACellNamesItsLoudestAndItsBusiestProxy(t *testing.T) {
	low, high := "a", "b"
	if idOf(low) > idOf(high) {
		low, high = high, low
	}
	cases := map[string]struct {
		told             []Loud // with the place of its proxy in the place of its ID
		loudest, busiest Loud
	}{
		"no request":                             {[]Loud{{0, 0, 0}}, Loud{}, Loud{}},
		"no failure":                             {[]Loud{{0, 5, 0}, {1, 6, 0}}, Loud{}, Loud{1, 6, 0}},
		"the most failures, the most requests":   {[]Loud{{0, 5, 2}, {1, 6, 1}}, Loud{0, 5, 2}, Loud{1, 6, 1}},
		"equal ones: the lower ID, told first":   {[]Loud{{0, 5, 2}, {1, 5, 2}}, Loud{0, 5, 2}, Loud{0, 5, 2}},
		"equal ones: the lower ID, told at last": {[]Loud{{1, 5, 2}, {0, 5, 2}}, Loud{0, 5, 2}, Loud{0, 5, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			named := func(l Loud) Loud {
				if l.N > 0 {
					l.ID = idOf([]string{low, high}[l.ID])
				}
				return l
			}
			var c Cell
			for _, l := range tc.told {
				c.hear([]string{low, high}[l.ID], l.N, l.X)
			}
			if d := cmp.Diff([]Loud{named(tc.loudest), named(tc.busiest)}, []Loud{c.Loudest, c.Busiest}); d != "" {
				t.Errorf("the loudest and the busiest (-want +got):\n%s", d)
			}
		})
	}
}

// A replica of before neither tells of a loudest proxy, nor is troubled by it: these fields are at
// the end of a cell, and a reader skips those that it does not know.
func TestACellOfAReplicaOfBeforeIsRead(t *testing.T) {
	c := Cell{Slot: canary, Start: at(0), Spread: Spread{1, 3, 1, 9, 3, 1}, Coverage: Coverage{5, 4, 3, 2, 1}}
	before := c.Encode()
	c.Loudest, c.Busiest = Loud{1 << 63, 3, 1}, Loud{7, 3, 1}
	now := c.Encode()
	if !bytes.HasPrefix(now, before) {
		t.Fatalf("the cell has the bytes\n%x, which do not begin with those of before:\n%x", now, before)
	}
	got, err := DecodeCell(before)
	if err != nil {
		t.Fatal(err)
	}
	c.Loudest, c.Busiest = Loud{}, Loud{}
	if d := cmp.Diff(c, got); d != "" {
		t.Errorf("the cell of before (-want +got):\n%s", d)
	}
	for rest := now[len(before):]; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		size := protowire.ConsumeFieldValue(field, kind, rest[n:])
		if field <= cellRefused || size < 0 {
			t.Fatalf("field %d is known to replicas of before, or is malformed", field)
		}
		rest = rest[n+size:]
	}
}

// Fuzzing found that counts without a proxy were read, and not written again.
func TestCountsOfNoProxyAreNotRead(t *testing.T) {
	c := Cell{Slot: canary, Start: noon, Loudest: Loud{1, 3, 2}, Busiest: Loud{1, 3, 0}}
	data := protowire.AppendFixed64(protowire.AppendTag(c.Encode(), cellLoudest, protowire.Fixed64Type), 0)
	got, err := DecodeCell(data)
	if err != nil {
		t.Fatal(err)
	}
	if c.Loudest = (Loud{}); cmp.Diff(c, got) != "" {
		t.Errorf("the cell (-want +got):\n%s", cmp.Diff(c, got))
	}
}

func FuzzDecodeCell(f *testing.F) {
	c := Cell{Slot: canary, Start: noon, From: at(-1), To: at(9), Stratum: Stratum{7, true}, Counts: of(answers(3)), Spread: Spread{1, 3, 0, 9, 0, 0}, Loudest: Loud{1 << 63, 3, 2}, Busiest: Loud{7, 3, 0}, Coverage: Coverage{5, 4, 3, 2, 1}}
	f.Add(c.Encode())
	f.Add(c.Encode()[:40])
	f.Add([]byte{0x52, 2, 200, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCell(data)
		if err != nil {
			return
		}
		again, err := DecodeCell(c.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, again); d != "" {
			t.Errorf("read, written and read again (-first +second):\n%s", d)
		}
	})
}

func TestACellIsRefusedWhen(t *testing.T) {
	good := func() Cell { return Cell{Slot: canary, Start: noon} }
	for name, change := range map[string]func(*Cell){
		"it has no service":                  func(c *Cell) { c.Service = "" },
		"a name is too long":                 func(c *Cell) { c.Variation = string(make([]byte, 300)) },
		"a name is not UTF-8":                func(c *Cell) { c.Namespace = "\xff" },
		"it has no start":                    func(c *Cell) { c.Start = time.Time{} },
		"more requests failed than are over": func(c *Cell) { c.Spread.X = 1 },
		"more failed at the loudest proxy":   func(c *Cell) { c.Loudest = Loud{1, 2, 3} },
		"more failed at the busiest proxy":   func(c *Cell) { c.Busiest = Loud{1, 2, 3} },
		"a sum of squares is negative":       func(c *Cell) { c.Spread.XX = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			if _, err := DecodeCell(c.Encode()); err != nil {
				t.Fatal(err)
			}
			change(&c)
			if got, err := DecodeCell(c.Encode()); err == nil {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

// BenchmarkCell is how many bytes a cell has as replicas tell it.
func BenchmarkCell(b *testing.B) {
	c := Cell{Slot: Slot{"namespace-01", "service-name-001", 8080, "canary"}, Start: noon, From: at(-1), To: at(9), Stratum: Stratum{Sequence: 4711}}
	c.Counts = of(map[Counter]uint64{Started: 950, Completed: 948, Class2: 900, Class4: 40, Class5: 8, Failed: 8})
	for i := range 12 {
		c.Counts.Latency()[4+i] = 79
	}
	c.Spread, c.Coverage = Spread{20, 948, 8, 45_000, 400, 6}, Coverage{20, 20, 0, 0, 0}
	c.Loudest, c.Busiest = Loud{1 << 63, 47, 2}, Loud{1 << 62, 61, 0}
	var n int
	for b.Loop() {
		n = len(c.Encode())
	}
	b.ReportMetric(float64(n), "B/cell")
}
