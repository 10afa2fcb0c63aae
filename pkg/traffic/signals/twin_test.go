// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sidecar is a proxy as it was measured to be: it counts, and every ten seconds sends
// what it has counted, if somebody is there.
type sidecar struct {
	uid       string
	connected bool
	opened    bool // there has been a stream
	counts    map[Slot]*Counts
	waiting   map[Slot]uint64 // for an answer
	streaming map[Slot]uint64 // answered, and the answer goes on
	givenUp   map[Slot]uint64
	lost      bool // a flush, since the last that came
	sent      bool // some flush has come
}

func newSidecar(uid string) *sidecar {
	return &sidecar{
		uid: uid, counts: map[Slot]*Counts{}, waiting: map[Slot]uint64{},
		streaming: map[Slot]uint64{}, givenUp: map[Slot]uint64{},
	}
}

// request does one thing to a slot.
func (s *sidecar) request(t *rapid.T, of Slot) {
	c := s.counts[of]
	if c == nil {
		c = &Counts{}
		s.counts[of] = c
	}
	switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
	case what < 2:
		c[Started]++
		s.waiting[of]++
	case what == 2 && s.waiting[of] > 0:
		s.waiting[of]--
		c[Completed]++
		c[rapid.SampledFrom([]Counter{Class2, Class4, Class5}).Draw(t, "class")]++
		c.Latency()[rapid.IntRange(0, Buckets-1).Draw(t, "latency")]++
	case what == 3 && s.waiting[of] > 0:
		s.waiting[of]--
		s.givenUp[of]++
	case what == 4 && s.waiting[of] > 0:
		s.waiting[of]--
		s.streaming[of]++
		c[Completed]++
		c[Class1]++
	case what == 5 && s.streaming[of] > 0:
		s.streaming[of]--
	}
}

// flush is what it sends, and no longer knows.
func (s *sidecar) flush(now time.Time) Flush {
	f := Flush{At: now}
	for _, of := range slices.SortedFunc(maps.Keys(s.counts), func(a, b Slot) int { return len(a.Variation) - len(b.Variation) }) {
		f.Slots = append(f.Slots, Reported{Slot: of, Counts: *s.counts[of], Active: s.waiting[of] + s.streaming[of]})
		*s.counts[of] = Counts{}
	}
	return f
}

// twin remembers every flush that came.
type twin struct {
	now  time.Time
	came []arrived
	gaps map[string]int
}

type arrived struct {
	at    time.Time
	uid   string
	flush Flush
}

// service as it is by looking at everything again. What was given up is not in it.
func (w *twin) service(from time.Time) map[string]Variation {
	out := map[string]Variation{}
	last := map[string]Flush{}
	for _, a := range w.came {
		for _, r := range a.flush.Slots {
			v := out[r.Slot.Variation]
			v.Name = r.Slot.Variation
			r.Counts[Failed] = r.Counts[Class5]
			v.Total.Add(&r.Counts)
			if !cellOf(a.at).start().Before(from) {
				v.Counts.Add(&r.Counts)
			}
			out[r.Slot.Variation] = v
		}
		last[a.uid] = a.flush
	}
	for _, f := range last {
		for _, r := range f.Slots {
			v := out[r.Slot.Variation]
			v.InFlight += r.Active
			v.Proxies++
			out[r.Slot.Variation] = v
		}
	}
	return out
}

func (w *twin) tick(a *Accumulator, all []*sidecar, serving bool) {
	w.now = w.now.Add(10 * time.Second)
	for _, s := range all {
		f := s.flush(w.now)
		if !serving {
			s.connected, s.lost = false, true
			continue
		}
		if !s.connected {
			if s.opened {
				a.Close(s.uid, w.now)
			}
			a.Open(Proxy{UID: s.uid, Namespace: "shop", Name: s.uid}, w.now)
			s.connected, s.opened = true, true
		}
		if s.lost && s.sent {
			w.gaps[s.uid]++
		}
		s.lost, s.sent = false, true
		w.came = append(w.came, arrived{w.now, s.uid, Flush{At: f.At, Slots: slices.Clone(f.Slots)}})
		if refused := a.Report(s.uid, f, w.now); refused > 0 {
			panic("there is no room")
		}
	}
}

func TestCountsAreWhatCameInWhateverBreaks(t *testing.T) {
	slots := []Slot{stable, canary}
	rapid.Check(t, func(t *rapid.T) {
		a, w, serving := New(Config{}), &twin{now: noon, gaps: map[string]int{}}, true
		var all []*sidecar
		for i := range rapid.IntRange(1, 4).Draw(t, "proxies") {
			all = append(all, newSidecar(fmt.Sprint("p", i)))
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			s := rapid.SampledFrom(all).Draw(t, "proxy")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				w.tick(a, all, serving)
			case 2:
				s.connected = false
			case 3:
				serving = rapid.Bool().Draw(t, "serving")
			default:
				s.request(t, rapid.SampledFrom(slots).Draw(t, "slot"))
			}
		}
		w.check(t, a, all)
		w.settle(a, all)
		w.check(t, a, all)
		w.checkGivenUp(t, a, all)
	})
}

// settle ends all requests, and waits until all of that was told.
func (w *twin) settle(a *Accumulator, all []*sidecar) {
	for _, s := range all {
		for of, n := range s.waiting {
			s.counts[of][Completed] += n
			s.counts[of][Class2] += n
		}
		clear(s.waiting)
		clear(s.streaming)
	}
	for range 3 {
		w.tick(a, all, true)
	}
}

func (w *twin) check(t *rapid.T, a *Accumulator, all []*sidecar) {
	since := w.now.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "since")) * time.Second)
	got := a.Service("shop", "web", since, w.now)
	seen := map[string]Variation{}
	for _, v := range got.Variations {
		v.Counts[Canceled], v.Total[Canceled] = 0, 0
		seen[v.Name] = Variation{Name: v.Name, Counts: v.Counts, Total: v.Total, InFlight: v.InFlight, Proxies: v.Proxies}
	}
	if d := cmp.Diff(w.service(got.From), seen); d != "" {
		t.Fatalf("the service since %v (-want +got):\n%s", got.From, d)
	}
	if len(seen) == 0 {
		return
	}
	gaps := map[string]int{}
	for _, g := range a.Service("shop", "web", noon, w.now).Gaps {
		gaps[g.Proxy.UID]++
	}
	for _, s := range all {
		if len(s.counts) > 0 && s.sent && len(a.proxies[s.uid].reports) > 0 && gaps[s.uid] != min(w.gaps[s.uid], maxGaps) {
			t.Fatalf("%s has %d gaps, want %d", s.uid, gaps[s.uid], w.gaps[s.uid])
		}
	}
}

// checkGivenUp: never too many, and just those if nothing was lost.
func (w *twin) checkGivenUp(t *rapid.T, a *Accumulator, all []*sidecar) {
	var given uint64
	exact := true
	for _, s := range all {
		for _, n := range s.givenUp {
			given += n
		}
		exact = exact && w.gaps[s.uid] == 0
	}
	// What was in flight, or ended, before the first flush came is not known.
	for _, came := range w.came {
		first := slices.IndexFunc(w.came, func(o arrived) bool { return o.uid == came.uid })
		exact = exact && len(w.came[first].flush.Slots) == 0
	}
	var got uint64
	for _, v := range a.Service("shop", "web", noon, w.now).Variations {
		got += v.Total[Canceled]
	}
	if got > given || exact && got != given {
		t.Fatalf("%d were given up, and %d are counted, exactly: %v", given, got, exact)
	}
}
