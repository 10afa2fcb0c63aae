// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// process is a proxy whose process began at some second.
type process struct {
	world
	began float64
}

func (p process) tell(seconds float64, active uint64, numbers map[Counter]uint64) {
	told := Reported{Slot: canary, Active: active, Counts: of(numbers)}
	p.Report("a", Flush{At: at(seconds), Began: at(p.began).Truncate(time.Second), Slots: []Reported{told}}, at(seconds))
}

// M11: an Envoy that was started again within one and a half intervals left no gap, and its
// requests that were in flight counted as given up.
func TestAProxyThatIsStartedAgainAtOnceIsAGapAndFailsNoRequest(t *testing.T) {
	w := newWorld(t, Config{})
	first, second := process{w, -100}, process{w, 20.2}
	w.open("a", 0)
	first.tell(0, 0, answers(1))
	first.tell(10, 40, map[Counter]uint64{Started: 100, Completed: 60, Class2: 60})
	w.Close("a", at(19.9)) // it is killed, and all is lost that it has counted since 10 s
	w.open("a", 20.5)
	for _, seconds := range []float64{24, 34, 44} {
		second.tell(seconds, 0, answers(1))
	}
	s := w.Service("shop", "web", noon, at(50))
	if d := cmp.Diff([]ProxyGap{{Proxy{UID: "a", Namespace: "shop", Name: "a"}, Gap{at(10), at(20)}}}, s.Gaps); d != "" {
		t.Errorf("the gaps (-want +got):\n%s", d)
	}
	if over, failed := s.Variations[0].Total.Outcomes(); over != 64 || failed != 0 {
		t.Errorf("%d requests are over and %d failed, want 64 and none", over, failed)
	}
}

func TestAProcess(t *testing.T) {
	const none, some = 0, 1
	for name, tc := range map[string]struct {
		before, after float64 // when the processes began
		last, first   float64 // flush of the one, and of the other
		gaps          int
		canceled      uint64 // of ten that the second one began, and that its clients gave up
	}{
		"that goes on leaves no gap":                              {-100, -100, 10, 20, none, 10},
		"of whose beginning the second is rounded otherwise":      {-100, -99, 10, 20, none, 10},
		"whose beginning is not told is believed to go on":        {-100, 0, 10, 20, none, 10},
		"that is new has told of all since it began":              {-100, 12, 10, 22, some, 10},
		"that is new and was not heard at first hides some":       {-100, 12, 10, 42, some, 0},
		"that is new though the former was as young is known too": {5, 12, 10, 18, some, 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			first, second := process{w, tc.before}, process{w, tc.after}
			w.open("a", 0)
			first.tell(0, 0, answers(1))
			first.tell(tc.last, 0, answers(1))
			w.Close("a", at(tc.last+1))
			w.open("a", tc.last+2)
			if tc.after == 0 {
				w.tell("a", tc.first, canary, 0, map[Counter]uint64{Started: 10})
			} else {
				second.tell(tc.first, 0, map[Counter]uint64{Started: 10})
			}
			if tc.after == 0 {
				w.tell("a", tc.first+10, canary, 0, nil)
			} else {
				second.tell(tc.first+10, 0, nil)
			}
			s := w.Service("shop", "web", noon, at(60))
			if len(s.Gaps) != tc.gaps || s.Variations[0].Total[Canceled] != tc.canceled {
				t.Errorf("the gaps are %v and %d were given up, want %d and %d", s.Gaps, s.Variations[0].Total[Canceled], tc.gaps, tc.canceled)
			}
		})
	}
}
