// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

type sample struct {
	at   int // seconds
	good bool
}

func TestSignal(t *testing.T) {
	tests := map[string]struct {
		samples []sample
		windows []string
		passed  time.Duration
		open    bool
	}{
		"always good": {samples: []sample{{0, true}, {5, true}, {10, true}}},
		"a window runs from the last good sign to the next":       {samples: []sample{{0, true}, {5, false}, {10, false}, {15, true}}, windows: []string{"0-15"}, passed: 15 * time.Second},
		"one that is open has no end yet":                         {samples: []sample{{0, true}, {5, false}, {10, false}}, passed: 10 * time.Second, open: true},
		"bad from the start counts from the first look":           {samples: []sample{{5, false}, {10, true}}, windows: []string{"5-10"}, passed: 5 * time.Second},
		"what could not be read in between belongs to the window": {samples: []sample{{0, true}, {60, false}, {65, true}}, windows: []string{"0-65"}, passed: 65 * time.Second},
		"two windows":  {samples: []sample{{0, true}, {5, false}, {10, true}, {15, true}, {20, false}, {25, true}}, windows: []string{"0-10", "15-25"}, passed: 20 * time.Second},
		"never looked": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Signal{Evidence: EvidenceLease}
			var windows []string
			var passed time.Duration
			for _, x := range tc.samples {
				w, p := s.Observe(at(x.at), x.good)
				passed += p
				if w != nil {
					windows = append(windows, fmt.Sprintf("%.0f-%.0f", w.From.Sub(noon).Seconds(), w.To.Sub(noon).Seconds()))
				}
			}
			if diff := cmp.Diff(tc.windows, windows); diff != "" {
				t.Errorf("windows (-want +got):\n%s", diff)
			}
			if passed != tc.passed || s.Open() != tc.open {
				t.Errorf("%s passed, open %t; want %s, %t", passed, s.Open(), tc.passed, tc.open)
			}
		})
	}
}

// The naive twin looks at the whole history: a second belongs to a window when
// the sample before it or the one after it was bad.
func TestSignalAgainstTheWholeHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Signal{}
		var history []sample
		now, sum, closed := 0, time.Duration(0), time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			now += rapid.IntRange(1, 90).Draw(t, "gap")
			x := sample{now, rapid.Bool().Draw(t, "good")}
			history = append(history, x)
			w, passed := s.Observe(at(x.at), x.good)
			sum += passed
			if w != nil {
				closed += w.To.Sub(w.From)
			}
		}
		var want time.Duration
		for i := 1; i < len(history); i++ {
			if !history[i-1].good || !history[i].good {
				want += time.Duration(history[i].at-history[i-1].at) * time.Second
			}
		}
		if sum != want {
			t.Fatalf("%s of fail-open, the history says %s: %v", sum, want, history)
		}
		if !s.Open() && closed != want {
			t.Fatalf("windows of %s, the history says %s", closed, want)
		}
	})
}

func TestRenewal(t *testing.T) {
	type step struct {
		at      int
		version string
		want    string // good, late, or nothing known
	}
	tests := map[string][]step{
		"renewed all the time":                {{0, "1", ""}, {5, "2", "good"}, {10, "3", "good"}},
		"looked at more often than renewed":   {{0, "1", ""}, {1, "1", ""}, {2, "2", "good"}, {3, "2", ""}},
		"never renewed since we look":         {{0, "1", ""}, {15, "1", ""}, {25, "1", "late"}},
		"a holder that died and was followed": {{0, "1", ""}, {5, "2", "good"}, {20, "2", ""}, {30, "2", "late"}, {35, "3", "good"}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var r renewal
			for _, s := range steps {
				good, known := r.observe(at(s.at), s.version, 20*time.Second)
				got := map[[2]bool]string{{true, true}: "good", {false, true}: "late"}[[2]bool{good, known}]
				if got != s.want {
					t.Errorf("at %d s with version %s: %q, want %q", s.at, s.version, got, s.want)
				}
			}
		})
	}
}

func TestCover(t *testing.T) {
	a, b := Window{EvidenceLease, at(0), at(10)}, Window{EvidenceAPIServer, at(5), at(7)}
	tests := map[string]struct{ a, b, want Window }{
		"nothing and a window":   {Window{}, a, a},
		"a window and nothing":   {a, Window{}, a},
		"one within the other":   {a, b, Window{EvidenceAPIServer, at(0), at(10)}},
		"the other way round":    {b, a, Window{EvidenceLease, at(0), at(10)}},
		"apart, with the middle": {Window{"", at(0), at(1)}, Window{"", at(8), at(9)}, Window{"", at(0), at(9)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Cover(tc.a, tc.b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const answer = `# HELP apiserver_admission_webhook_fail_open_count [ALPHA] Admission webhook fail open count
# TYPE apiserver_admission_webhook_fail_open_count counter
apiserver_admission_webhook_fail_open_count{name="spec-hash.plumbline.dev",type="admit"} 2
apiserver_admission_webhook_fail_open_count{name="verdict.plumbline.dev",type="validating"} 3
apiserver_admission_webhook_fail_open_count{name="other.example.com",type="validating"} 100
apiserver_admission_webhook_rejection_count{name="verdict.plumbline.dev"} 7
process_start_time_seconds 1.76735520012e+09
`

func TestParseReading(t *testing.T) {
	tests := map[string]struct {
		text string
		want Reading
		err  string
	}{
		"ours are added, others' are not": {text: answer, want: Reading{Started: "1.76735520012e+09", Count: 5}},
		"none has failed":                 {text: "process_start_time_seconds 1\n", want: Reading{Started: "1"}},
		"a time stamp behind the value":   {text: "process_start_time_seconds 1\n" + failOpenMetric + `{name="a.plumbline.dev"} 4 1700000000000`, want: Reading{Started: "1", Count: 4}},
		"no start time":                   {text: failOpenMetric + `{name="a.plumbline.dev"} 4`, err: "no process_start_time_seconds"},
		"nothing":                         {err: "no process_start_time_seconds"},
		"a value that is none":            {text: failOpenMetric + `{name="a.plumbline.dev"} many`, err: "many"},
		"a count that is no number":       {text: "process_start_time_seconds 1\n" + failOpenMetric + `{name="a.plumbline.dev"} NaN`, err: "has no count"},
		"a count below zero":              {text: failOpenMetric + `{name="a.plumbline.dev"} -1`, err: "has no count"},
		"no value":                        {text: failOpenMetric + `{name="a.plumbline.dev"}`, err: "no value"},
		"no end":                          {text: failOpenMetric + `{name="a.plumbline.dev"`, err: "no sample"},
		"a line without end":              {text: strings.Repeat("x", maxLine+1), err: "too long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReading(strings.NewReader(tc.text))
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseReading(f *testing.F) {
	f.Add(answer)
	f.Add(failOpenMetric + `{name="a.plumbline.dev"} NaN`)
	f.Add(failOpenMetric + "{}\nprocess_start_time_seconds ")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReading(strings.NewReader(text))
		if err != nil && r != (Reading{}) {
			t.Errorf("a reading beside an error: %+v", r)
		}
		if err == nil && (r.Started == "" || r.Count < 0 || r.Count != r.Count) {
			t.Errorf("%+v", r)
		}
	})
}

func TestCounters(t *testing.T) {
	type reading struct {
		at      int
		started string
		count   float64
		want    string // window and increase
	}
	early, late := fmt.Sprint(noon.Add(-time.Hour).Unix()), fmt.Sprint(noon.Add(90*time.Second).Unix())
	tests := map[string][]reading{
		"what was counted before anybody looked is not ours": {{0, early, 7, ""}, {60, early, 7, ""}},
		"an increase is between two readings":                {{0, early, 7, ""}, {60, early, 9, "0-60 +2"}, {120, early, 9, ""}},
		"an API server that started since":                   {{0, early, 7, ""}, {120, late, 1, "90-120 +1"}},
		"two API servers are told apart":                     {{0, early, 7, ""}, {60, "5", 3, "0-60 +3"}, {120, early, 8, "0-120 +1"}, {180, "5", 3, ""}},
		"a count that goes down tells nothing":               {{0, early, 7, ""}, {60, early, 2, ""}, {120, early, 3, "60-120 +1"}},
	}
	for name, readings := range tests {
		t.Run(name, func(t *testing.T) {
			c := Counters{Began: noon}
			for _, r := range readings {
				w, more := c.Observe(at(r.at), Reading{Started: r.started, Count: r.count})
				got := ""
				if w != nil {
					got = fmt.Sprintf("%.0f-%.0f +%.0f", w.From.Sub(noon).Seconds(), w.To.Sub(noon).Seconds(), more)
				}
				if got != r.want {
					t.Errorf("at %d s: %q, want %q", r.at, got, r.want)
				}
			}
		})
	}
}

func TestCountersAreBounded(t *testing.T) {
	c := Counters{Began: noon}
	for i := range 10 * maxInstances {
		c.Observe(at(i), Reading{Started: fmt.Sprint(i)})
	}
	if len(c.seen) > maxInstances {
		t.Errorf("%d API servers are remembered", len(c.seen))
	}
	c.Observe(noon.Add(2*forgetAfter), Reading{Started: "new"})
	if len(c.seen) != 1 {
		t.Errorf("%d are remembered after a day", len(c.seen))
	}
}
