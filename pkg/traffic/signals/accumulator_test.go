// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon   = time.Unix(1_800_000_000, 0)
	stable = Slot{"shop", "web", 80, "stable"}
	canary = Slot{"shop", "web", 80, "canary"}
)

// at so many seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// world is an accumulator and the time of all clocks.
type world struct {
	t *testing.T
	*Accumulator
}

func newWorld(t *testing.T, config Config) world { return world{t, New(config)} }

func (w world) open(uid string, seconds float64) {
	w.t.Helper()
	if !w.Open(Proxy{UID: uid, Namespace: "shop", Name: uid}, at(seconds)) {
		w.t.Fatalf("there is no room for %s", uid)
	}
}

// tell has a proxy tell of a slot.
func (w world) tell(uid string, seconds float64, of Slot, active uint64, numbers map[Counter]uint64) {
	w.t.Helper()
	told := Reported{Slot: of, Active: active}
	for c, n := range numbers {
		told.Counts[c] = n
	}
	if refused := w.Report(uid, Flush{At: at(seconds), Slots: []Reported{told}}, at(seconds)); refused > 0 {
		w.t.Fatalf("there is no room for %v", of)
	}
}

// variation of the service, since noon.
func (w world) variation(name string, seconds float64) Variation {
	w.t.Helper()
	for _, v := range w.Service("shop", "web", noon, at(seconds)).Variations {
		if v.Name == name {
			return v
		}
	}
	w.t.Fatalf("nobody tells of %s", name)
	return Variation{}
}

func answers(n uint64) map[Counter]uint64 {
	return map[Counter]uint64{Started: n, Completed: n, Class2: n}
}

func TestAServiceIsTheSumOfItsPortsAndProxies(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.open("b", 0)
	other := stable
	other.Port = 8080
	w.tell("a", 10, stable, 2, answers(60))
	w.tell("b", 12, stable, 0, answers(20))
	w.tell("b", 22, other, 1, answers(10))
	w.tell("a", 20, canary, 0, answers(10))
	w.tell("a", 21, Slot{"shop", "other", 80, "stable"}, 5, answers(1000))
	got := w.Service("shop", "web", noon, at(25))
	want := Service{From: noon, To: at(25), Variations: []Variation{
		{Name: "canary", Counts: of(answers(10)), Total: of(answers(10)), First: at(20), Share: 0.1, Proxies: 1, Oldest: at(21)},
		{Name: "stable", Counts: of(answers(90)), Total: of(answers(90)), First: at(10), Share: 0.9, InFlight: 1, Proxies: 2, Oldest: at(21)},
	}}
	// Of a slot that a flush does not tell of there is nothing in flight.
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the service (-want +got):\n%s", d)
	}
}

func TestOnlyWholeCellsAfterATimeAreCounted(t *testing.T) {
	w := newWorld(t, Config{Retention: time.Minute})
	w.open("a", 0)
	for i := range 20 {
		w.tell("a", float64(10*i+5), stable, 0, answers(1))
	}
	for name, tc := range map[string]struct {
		since, from float64
		want        uint64
	}{
		"at the beginning of a cell":    {180, 180, 2},
		"in one":                        {171, 180, 2},
		"before what is kept":           {0, 140, 6},
		"in the cell that is not ended": {190.5, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Service("shop", "web", at(tc.since), at(197))
			if n := got.Variations[0].Counts[Completed]; n != tc.want || !got.From.Equal(at(tc.from)) {
				t.Errorf("%d since %v, want %d since %v", n, got.From, tc.want, at(tc.from))
			}
			if n := got.Variations[0].Total[Completed]; n != 20 {
				t.Errorf("%d in all, want 20", n)
			}
		})
	}
}

func TestAGapIs(t *testing.T) {
	type told struct {
		seconds float64
		anew    bool // on another stream
	}
	for name, tc := range map[string]struct {
		flushes []told
		want    []Gap
	}{
		"nothing on one stream, however late a flush is":       {[]told{{10, true}, {20, false}, {95, false}}, nil},
		"nothing when a stream breaks between two":             {[]told{{10, true}, {20, false}, {30, true}, {40, false}}, nil},
		"nothing when the first of a stream is a little late":  {[]told{{10, true}, {20, false}, {34, true}}, nil},
		"the time of one flush that is lost":                   {[]told{{10, true}, {20, false}, {40, true}}, []Gap{{at(20), at(30)}}},
		"the time of many":                                     {[]told{{10, true}, {20, false}, {320, true}, {330, false}}, []Gap{{at(20), at(310)}}},
		"known before there were two on a stream":              {[]told{{10, true}, {20, true}, {30, true}, {60, true}}, []Gap{{at(30), at(50)}}},
		"the time of one second, if there is one every second": {[]told{{10, true}, {11, false}, {13, true}}, []Gap{{at(11), at(12)}}},
		"by the shortest time between two":                     {[]told{{10, true}, {11, false}, {31, false}, {33, true}}, []Gap{{at(31), at(32)}}},
		"each by itself":                                       {[]told{{10, true}, {20, false}, {50, true}, {60, false}, {100, true}}, []Gap{{at(20), at(40)}, {at(60), at(90)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			for _, f := range tc.flushes {
				if f.anew {
					w.Close("a", at(f.seconds-0.2))
					w.open("a", f.seconds-0.1)
				}
				w.tell("a", f.seconds, stable, 0, answers(1))
			}
			got := w.Service("shop", "web", noon, at(400))
			var gaps []Gap
			for _, g := range got.Gaps {
				gaps = append(gaps, g.Gap)
			}
			if d := cmp.Diff(tc.want, gaps); d != "" {
				t.Errorf("the gaps (-want +got):\n%s", d)
			}
			if n := got.Variations[0].Total[Completed]; n != uint64(len(tc.flushes)) {
				t.Errorf("%d are counted of %d", n, len(tc.flushes))
			}
		})
	}
}

func TestAClockThatGoesBackIsAGap(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.tell("a", 20, stable, 0, answers(1))
	w.Close("a", at(21))
	w.open("a", 22)
	w.Report("a", Flush{At: at(5), Slots: []Reported{{Slot: stable}}}, at(30))
	if got := w.Service("shop", "web", noon, at(31)); got.Gapped != 1 {
		t.Errorf("%d proxies have gaps", got.Gapped)
	}
}

func TestAClockThatGoesBackOnAStreamIsNoInterval(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	now := 10.0
	flush := func(clock float64) {
		w.Report("a", Flush{At: at(clock), Slots: []Reported{{Slot: stable}}}, at(now))
		now++
	}
	for _, clock := range []float64{10, 11, 5, 6} {
		flush(clock)
	}
	w.Close("a", at(now))
	w.open("a", now)
	flush(8) // two seconds after the last one, and a flush comes each second
	if got := w.Service("shop", "web", noon, at(60)); got.Gapped != 1 {
		t.Errorf("%d proxies have gaps", got.Gapped)
	}
}

func TestManyGapsOfAProxyBecomeOne(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 30 {
		w.open("a", float64(60*i))
		w.tell("a", float64(60*i+1), stable, 0, nil)
		w.Close("a", at(float64(60*i+2)))
	}
	want := []Gap{{at(1), at(1311)}} // of the first 22
	for i := 23; i < 30; i++ {
		want = append(want, Gap{at(float64(60*i - 59)), at(float64(60*i - 9))})
	}
	var got []Gap
	for _, g := range w.Service("shop", "web", noon, at(1790)).Gaps {
		got = append(got, g.Gap)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the gaps (-want +got):\n%s", d)
	}
}

func TestWhatIsInFlight(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.tell("a", 10, stable, 3, nil)
	w.Close("a", at(11))
	if v := w.variation("stable", 60); v.InFlight != 3 || v.Silent != 1 || v.Proxies != 1 || !v.Oldest.Equal(at(10)) {
		t.Errorf("of a proxy that is not heard of: %+v", v)
	}
	for seconds, silent := range map[float64]int{40: 0, 41: 1} { // three intervals after it was heard of
		if v := w.variation("stable", seconds); v.Silent != silent {
			t.Errorf("after %g s %d are silent", seconds, v.Silent)
		}
	}
	w.End("a", at(61))
	if v := w.variation("stable", 62); v.InFlight != 0 || v.Silent != 0 || v.Proxies != 0 {
		t.Errorf("of a pod that is gone: %+v", v)
	}
	if refused := w.Report("a", Flush{At: at(70), Slots: []Reported{{Slot: stable, Active: 5}}}, at(70)); refused != 1 {
		t.Error("it is still listened to")
	}
}

func TestWhatIsGivenUp(t *testing.T) {
	type told struct {
		active  uint64
		numbers map[Counter]uint64
	}
	for name, tc := range map[string]struct {
		flushes []told // the first is without the slot, unless the proxy is not new
		old     bool
		want    uint64
	}{
		"is what is neither answered nor in flight": {[]told{{0, map[Counter]uint64{Started: 5}}, {}}, false, 5},
		"is not in flight":                          {[]told{{5, map[Counter]uint64{Started: 5}}, {5, nil}}, false, 0},
		"is found when it is":                       {[]told{{5, map[Counter]uint64{Started: 5}}, {2, nil}, {2, nil}}, false, 3},
		"may not have had a connection":             {[]told{{0, map[Counter]uint64{Abandoned: 4}}, {}}, false, 4},
		"is no time-out before there was one":       {[]told{{0, map[Counter]uint64{Abandoned: 4, Completed: 4, Class5: 4, TimedOut: 4}}, {}}, false, 0},
		"is nothing that found nobody":              {[]told{{0, map[Counter]uint64{NoneHealthy: 4, NotConnected: 3, Overflowed: 2, Completed: 9, Class5: 9}}, {}}, false, 0},
		"is no first attempt":                       {[]told{{0, map[Counter]uint64{Started: 8, Retried: 4, Completed: 4}}, {}}, false, 0},
		"is no WebSocket that ends":                 {[]told{{4, map[Counter]uint64{Started: 4, Completed: 4, Class1: 4}}, {4, nil}, {}, {}}, false, 0},
		"is found besides WebSockets when they end": {[]told{{4, map[Counter]uint64{Started: 4, Completed: 4, Class1: 4}}, {4, map[Counter]uint64{Started: 3}}, {}, {}}, false, 3},
		"is found only by two flushes":              {[]told{{0, map[Counter]uint64{Started: 1}}, {0, map[Counter]uint64{Completed: 1}}, {}}, false, 0},
		"is none that ended while two flushes were read": {
			[]told{{0, map[Counter]uint64{Started: 1}}, {0, map[Counter]uint64{Started: 1, Completed: 1}}, {0, map[Counter]uint64{Completed: 1}}, {}}, false, 0,
		},
		"is nothing that was in flight before": {[]told{{4, map[Counter]uint64{Started: 9}}, {}, {}}, true, 0},
		"is what is more than that":            {[]told{{4, map[Counter]uint64{Started: 9}}, {0, map[Counter]uint64{Started: 6}}, {}}, true, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.open("a", 0)
			if !tc.old {
				w.Report("a", Flush{At: at(1)}, at(1))
			}
			for i, f := range tc.flushes {
				w.tell("a", float64(10*i+11), stable, f.active, f.numbers)
			}
			if got := w.variation("stable", 60).Total[Canceled]; got != tc.want {
				t.Errorf("%d were given up, want %d", got, tc.want)
			}
		})
	}
}

func TestASlotThatAProxyTellsOfLaterHadNothingInFlight(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.tell("a", 1, stable, 0, nil)
	w.tell("a", 11, canary, 0, answers(1))
	w.tell("a", 21, canary, 0, nil)
	w.tell("a", 31, canary, 0, nil)
	if v := w.variation("canary", 60); v.Total[Canceled] != 0 || v.Total[Completed] != 1 {
		t.Errorf("%d were given up, %d answered", v.Total[Canceled], v.Total[Completed])
	}
}

func TestAVariationBeginsWithTheFirstOfItsPorts(t *testing.T) {
	v := Variation{First: at(10)}
	v.add(&slot{first: at(5)}, 0)
	v.add(&slot{first: at(7)}, 0)
	if !v.First.Equal(at(5)) {
		t.Errorf("it begins at %v", v.First)
	}
}

func TestGapsAreToldOldestFirstThenByProxy(t *testing.T) {
	w := newWorld(t, Config{})
	var want []string
	for i := range 20 { // of each two proxies the gap begins at the same time
		uid, begin := fmt.Sprintf("%02d", i), float64(i/2)
		w.open(uid, begin)
		w.tell(uid, begin+1, stable, 0, answers(1))
		w.tell(uid, begin+10, stable, 0, answers(1))
		w.Close(uid, at(begin+11))
		w.open(uid, begin+100)
		w.tell(uid, begin+101, stable, 0, answers(1))
		want = append(want, uid)
	}
	var got []string
	for _, g := range w.Service("shop", "web", noon, at(200)).Gaps {
		got = append(got, g.Proxy.UID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the gaps (-want +got):\n%s", d)
	}
}

func TestWhatComesOnTopIsNotCounted(t *testing.T) {
	w := newWorld(t, Config{Proxies: 2, Slots: 3, SlotsOfProxy: 2})
	w.open("a", 0)
	w.open("b", 0)
	if w.Open(Proxy{UID: "c"}, at(0)) {
		t.Error("there is room for a third proxy")
	}
	slots := func(names ...string) (f Flush) {
		f.At = at(1)
		for _, name := range names {
			f.Slots = append(f.Slots, Reported{Slot: Slot{"shop", "web", 80, name}})
		}
		return f
	}
	if refused := w.Report("a", slots("1", "2", "3"), at(1)); refused != 1 {
		t.Errorf("%d of three slots are refused of one proxy, want 1", refused)
	}
	if refused := w.Report("b", slots("3", "4"), at(1)); refused != 1 {
		t.Errorf("%d of four slots are refused of all, want 1", refused)
	}
	if refused := w.Report("nobody", slots("1"), at(1)); refused != 1 {
		t.Error("one that has no stream is listened to")
	}
}
