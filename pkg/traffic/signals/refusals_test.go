// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"testing"
	"time"
)

// flushOf so many services with two variations each.
func flushOf(services int) (slots []Reported) {
	for i := range services {
		for _, variation := range []string{"stable", "canary"} {
			r := Reported{Slot: Slot{"shop", fmt.Sprintf("s%03d", i), 80, variation}}
			r.Counts[Completed], r.Counts[Started], r.Counts[Class2] = 5, 5, 5
			slots = append(slots, r)
		}
	}
	return slots
}

// M1 of the review of the mesh.
func TestAGatewayInFrontOfFiveHundredReleasesIsCountedWhole(t *testing.T) {
	w := newWorld(t, Config{})
	if !w.Open(Proxy{UID: "gateway", Gateway: true}, at(0)) {
		t.Fatal("there is no room")
	}
	for flush := range 3 {
		if n := w.Report("gateway", Flush{At: at(float64(10 * flush)), Slots: flushOf(500)}, at(float64(10*flush))); n > 0 {
			t.Fatalf("%d slots are refused", n)
		}
	}
	for i := range 500 {
		s := w.Service("shop", fmt.Sprintf("s%03d", i), noon, at(40))
		if len(s.Variations) != 2 || s.Gapped != 0 || s.Variations[0].Total[Completed] != 15 || s.Variations[1].Total[Completed] != 15 {
			t.Fatalf("of service %d: %+v", i, s)
		}
	}
}

func TestASlotThatIsRefusedIsAGap(t *testing.T) {
	for name, config := range map[string]Config{"of one proxy": {SlotsOfProxy: 6}, "of all proxies": {Slots: 6}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, config)
			w.open("a", 0)
			w.Report("a", Flush{At: at(10), Slots: flushOf(4)}, at(10))
			w.Report("a", Flush{At: at(20), Slots: flushOf(4)}, at(20))
			if s := w.Service("shop", "s002", noon, at(25)); s.Gapped != 0 || s.Variations[0].Uncounted != 0 {
				t.Errorf("of the last service that is counted: %+v", s)
			}
			s := w.Service("shop", "s003", noon, at(25))
			if len(s.Variations) != 2 || s.Gapped != 1 || len(s.Gaps) == 0 || s.Variations[0].Uncounted != 1 || s.Variations[1].Uncounted != 1 {
				t.Fatalf("of the service that is not: %+v", s)
			}
			if g := s.Gaps[0]; g.Proxy.UID != "a" || !g.From.Equal(at(10)) || !g.To.Equal(at(20)) {
				t.Errorf("the gap is %+v", g)
			}
			if s := w.Service("shop", "s003", at(21), at(3600)); s.Gapped != 0 {
				t.Errorf("an hour later there are %d gaps", s.Gapped)
			}
		})
	}
}

func TestSlotsThatCannotBeKeptByNameAreGapsOfEveryService(t *testing.T) {
	w := newWorld(t, Config{SlotsOfProxy: 2})
	w.open("a", 0)
	w.Report("a", Flush{At: at(10), Slots: flushOf(maxRefusals)}, at(10))
	s := w.Service("shop", "s000", noon.Add(-time.Hour), at(15))
	if s.Gapped != 1 || s.Variations[0].Uncounted != 1 {
		t.Errorf("of a service that is counted: %+v", s)
	}
	w.sweep(at(2 * 3600))
	if w.refused.count != 0 || len(w.refused.of) != 0 || w.refused.others != (Gap{}) {
		t.Errorf("after two hours %d are kept", w.refused.count)
	}
}

// A gateway lives for months, and releases come and go.
func TestSlotsOfReleasesThatAreOverMakeRoom(t *testing.T) {
	w := newWorld(t, Config{SlotsOfProxy: 2})
	w.open("a", 0)
	w.Report("a", Flush{At: at(0), Slots: flushOf(1)}, at(0))
	for s := 10.0; s < 2*3600; s += 10 {
		w.Report("a", Flush{At: at(s)}, at(s))
	}
	w.tell("a", 2*3600, stable, 0, answers(1)) // which fails if it is refused
}
