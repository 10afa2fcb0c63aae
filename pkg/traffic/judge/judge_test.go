// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// scene is what is told in each ten seconds of a stage, by so many proxies alike.
type scene struct {
	cells, proxies    int
	canary, control   [2]uint64 // requests and failures of each proxy
	slow, controlSlow uint64
	sequence          uint64
	change            func(m *traffic.Measurement)
	facts             func(*Facts)
}

// judge a scene.
func (s scene) judge() Assessment {
	c := DefaultConfig("canary", "stable")
	state := New(DefaultR0, 0)
	state.threshold, state.width = 0, 2
	state.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	for at := range s.cells {
		m := traffic.Measurement{Next: traffic.Cursor{}}
		for arm, told := range [][2]uint64{s.canary, s.control} {
			start := noon.Add(time.Duration(at) * 10 * time.Second)
			cell := traffic.Cell{
				Part: "a", Position: traffic.Position{Epoch: 1, Cell: uint64(at*2 + arm + 1)}, Variation: []string{"canary", "stable"}[arm], Port: 80,
				Start: start, From: start, Sequence: s.sequence,
			}
			for i := range s.proxies {
				report(&cell, uint64(i)+1, told[0], told[1])
			}
			late := []uint64{s.slow, s.controlSlow}[arm]
			cell.Latency = []uint64{cell.Over - late, late}
			cell.Coverage.Expected, cell.Coverage.Telling = cell.Spread.Proxies, cell.Spread.Proxies
			m.Cells = append(m.Cells, cell)
			m.Next["a"] = cell.Position
		}
		if s.change != nil {
			s.change(&m)
		}
		state.Count(&c, &m)
	}
	since := time.Duration(s.cells) * 10 * time.Second
	facts := Facts{Now: noon.Add(since), HealthThreshold: 9500, Minimum: time.Minute, Measured: since, SinceStep: since}
	if s.facts != nil {
		s.facts(&facts)
	}
	return Judge(state, &c, &facts)
}

func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		scene   scene
		verdict Verdict
		reason  Reason
		stands  bool
	}{
		"a good canary passes after its minimum time": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}}, Pass, WithinThreshold, false,
		},
		"a good canary waits for its minimum time": {
			scene{cells: 5, proxies: 5, sequence: 7, canary: [2]uint64{100, 0}, control: [2]uint64{90, 0}}, Undecided, MinimumTime, false,
		},
		"a canary with few requests is not decided": {
			scene{cells: 10, proxies: 1, sequence: 7, canary: [2]uint64{2, 0}, control: [2]uint64{20, 0}}, Undecided, TooFewRequests, false,
		},
		"a canary without requests holds": {
			scene{cells: 10, proxies: 5, sequence: 7, control: [2]uint64{20, 0}}, NoData, NoRequests, true,
		},
		"requests under another sequence are none of the stage": {
			scene{cells: 30, proxies: 5, sequence: 6, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}}, NoData, NoRequests, true,
		},
		"failures under another sequence fail the canary all the same": {
			scene{cells: 30, proxies: 5, sequence: 0, canary: [2]uint64{10, 2}, control: [2]uint64{90, 1}}, Fail, Errors, false,
		},
		"three failures of a canary beside a control without any are few": {
			scene{cells: 30, proxies: 3, sequence: 7, canary: [2]uint64{1000, 0}, control: [2]uint64{9000, 0}, change: func(m *traffic.Measurement) {
				if m.Cells[0].Position.Cell == 1 {
					m.Cells[0].Failed, m.Cells[0].Spread.X, m.Cells[0].Spread.XX, m.Cells[0].Spread.XN = 3, 3, 3, 3000
				}
			}}, Pass, WithinThreshold, false,
		},
		"a fix passes while the control burns": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 45}}, Pass, WithinThreshold, false,
		},
		"both arms burn": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 2}, control: [2]uint64{90, 18}}, BothBad, BothAboveThreshold, false,
		},
		"both arms burn right after a step": {
			scene{cells: 5, proxies: 5, sequence: 7, canary: [2]uint64{20, 6}, control: [2]uint64{90, 27}}, Fail, BadAfterStep, false,
		},
		"a canary alone with too many failures": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 2}, facts: func(f *Facts) { f.Alone = true }}, Fail, AboveThreshold, false,
		},
		"a canary above the threshold beside a control within": {
			scene{cells: 60, proxies: 5, sequence: 7, canary: [2]uint64{100, 6}, control: [2]uint64{1000, 45}}, Fail, AboveThreshold, false,
		},
		"as bad as a bad control within the margin": {
			scene{cells: 600, proxies: 5, sequence: 7, canary: [2]uint64{100, 5}, control: [2]uint64{900, 45}}, Pass, WithinMargin, false,
		},
		"slow requests": {
			scene{cells: 10, proxies: 5, sequence: 7, canary: [2]uint64{100, 0}, control: [2]uint64{900, 0}, slow: 50, controlSlow: 45}, Fail, Latency, false,
		},
		"more slow requests, though few": {
			scene{cells: 10, proxies: 5, sequence: 7, canary: [2]uint64{1000, 0}, control: [2]uint64{9000, 0}, slow: 50, controlSlow: 45}, Pass, WithinThreshold, false,
		},
		"endpoints that are not ready for fifteen seconds": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, facts: func(f *Facts) { f.UnreadySince = f.Now.Add(-15 * time.Second) }}, Fail, Unready, false,
		},
		"endpoints that are not ready for fourteen seconds": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, facts: func(f *Facts) { f.UnreadySince = f.Now.Add(-14 * time.Second) }}, Pass, WithinThreshold, false,
		},
		"endpoints that are not ready, and no requests": {
			scene{facts: func(f *Facts) { f.UnreadySince = f.Now.Add(-time.Minute) }}, Fail, Unready, false,
		},
		"a canary that answers nothing": {
			scene{cells: 6, proxies: 5, sequence: 7, control: [2]uint64{90, 0}, facts: func(f *Facts) { f.InFlight, f.ControlInFlight = 40, 40 }}, Fail, Hanging, false,
		},
		"a canary that answers nothing to few": {
			scene{cells: 6, proxies: 5, sequence: 7, control: [2]uint64{90, 0}, facts: func(f *Facts) { f.InFlight, f.ControlInFlight = 19, 40 }}, NoData, NoRequests, true,
		},
		"a control that answers nothing either": {
			scene{cells: 6, proxies: 5, sequence: 7, facts: func(f *Facts) { f.InFlight, f.ControlInFlight = 40, 40 }}, NoData, NoRequests, true,
		},
		"a canary that answers one of many": {
			scene{cells: 6, proxies: 1, sequence: 7, canary: [2]uint64{1, 0}, control: [2]uint64{900, 0}, facts: func(f *Facts) { f.InFlight, f.ControlInFlight = 40, 40 }}, Undecided, TooFewRequests, false,
		},
		"more than a fifth of the proxies is silent": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) {
				for i := range m.Cells {
					m.Cells[i].Coverage.Expected, m.Cells[i].Coverage.Silent = 7, 2
				}
			}}, Undecided, Blind, true,
		},
		"a fifth of the proxies is silent": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) {
				for i := range m.Cells {
					m.Cells[i].Coverage.Expected, m.Cells[i].Coverage.Silent = 5, 1
				}
			}}, Pass, WithinThreshold, false,
		},
		"the blind see failures": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 3}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) {
				for i := range m.Cells {
					m.Cells[i].Coverage.Gapped = 5
				}
			}}, Fail, Errors, true,
		},
		"a part is not heard": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) { m.Unheard = []string{"a"} }}, Undecided, Blind, true,
		},
		"one of ten proxies has all failures": {
			scene{cells: 30, proxies: 10, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: failures(8)}, Undecided, LoudestProxy, false,
		},
		"one of ten proxies has all failures, and there is no control": {
			scene{cells: 30, proxies: 10, sequence: 7, canary: [2]uint64{10, 0}, change: failures(10), facts: func(f *Facts) { f.Alone = true }}, Undecided, LoudestProxy, false,
		},
		"one proxy has nearly all requests": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{1, 0}, control: [2]uint64{90, 0}, change: requests(1000)}, Undecided, LoudestProxy, false,
		},
		"one of two proxies has nearly all requests": {
			scene{cells: 30, proxies: 2, sequence: 7, canary: [2]uint64{1, 0}, control: [2]uint64{90, 0}, change: requests(1000)}, Pass, WithinThreshold, false,
		},
		"one proxy has nearly all requests, and the others fail": {
			scene{cells: 300, proxies: 5, sequence: 7, canary: [2]uint64{2, 1}, control: [2]uint64{9000, 450}, change: requests(1000), facts: func(f *Facts) { f.HealthThreshold = 9490 }}, Undecided, LoudestProxy, false,
		},
		"both arms burn for a minute after a step": {
			scene{cells: 6, proxies: 5, sequence: 7, canary: [2]uint64{20, 6}, control: [2]uint64{90, 27}}, BothBad, BothAboveThreshold, false,
		},
		"counts of many proxies are refused": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) {
				for i := range m.Cells {
					m.Cells[i].Coverage.Refused = 2
				}
			}}, Undecided, Blind, true,
		},
		"counts of one in six proxies are refused": {
			scene{cells: 30, proxies: 5, sequence: 7, canary: [2]uint64{10, 0}, control: [2]uint64{90, 0}, change: func(m *traffic.Measurement) {
				for i := range m.Cells {
					m.Cells[i].Coverage.Refused = 1
				}
			}}, Pass, WithinThreshold, false,
		},
		"one of two proxies of the canary has all failures, beside ten of the control": {
			scene{cells: 30, proxies: 2, sequence: 7, canary: [2]uint64{50, 0}, control: [2]uint64{450, 0}, change: func(m *traffic.Measurement) {
				failures(40)(m)
				m.Cells[1].Coverage.Expected = 10
			}}, Fail, Errors, false,
		},
		"one of two proxies has all failures": {
			scene{cells: 30, proxies: 2, sequence: 7, canary: [2]uint64{50, 0}, control: [2]uint64{450, 0}, change: failures(40)}, Fail, Errors, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.scene.judge()
			if got.Verdict != c.verdict || got.Reason != c.reason || got.ClockStands != c.stands {
				t.Errorf("%s by %s, the clock stands: %v; want %s by %s, %v\n%+v", got.Verdict, got.Reason, got.ClockStands, c.verdict, c.reason, c.stands, got)
			}
		})
	}
}

// requests that the first proxy has besides, in each cell, of which none fails.
func requests(n uint64) func(*traffic.Measurement) {
	return func(m *traffic.Measurement) {
		cell := &m.Cells[0]
		cell.Spread = traffic.Spread{}
		had := cell.Busiest
		proxies := cell.Coverage.Expected
		cell.Over, cell.Failed, cell.Busiest, cell.Latency = 0, 0, traffic.Reporter{}, nil
		for i := range proxies {
			more := had.N
			if i == 0 {
				more += n
			}
			report(cell, i+1, more, had.X)
		}
	}
}

// failures of the first proxy, in each cell.
func failures(x uint64) func(*traffic.Measurement) {
	return func(m *traffic.Measurement) {
		cell := &m.Cells[0]
		n := cell.Busiest.N
		cell.Failed, cell.Spread.X, cell.Spread.XN, cell.Spread.XX = x, x, float64(x*n), float64(x*x)
		cell.Loudest = traffic.Reporter{ID: 1, N: n, X: x}
		cell.Latency = nil
	}
}

func TestARestartHalvesAlphaAndReadsNothingTwice(t *testing.T) {
	m := measure([]told{{part: "a", port: 80, sequence: 7, variation: "canary", proxy: 1, n: 10, x: 3}})
	s := counted(m)
	next := s.Restart().Restart()
	c := DefaultConfig("canary", "stable")
	next.Count(&c, &m)
	if next.canary.over != 0 || next.Restarts() != 2 || next.R0() != s.R0() {
		t.Errorf("%d requests after %d restarts, r0 %v", next.canary.over, next.Restarts(), next.R0())
	}
	if got := Judge(next, &c, &Facts{Now: noon}).Errors.FailsAt; got != 800 {
		t.Errorf("e fails at %v, want 800", got)
	}
}

func TestBeforeItsFirstStageACanaryIsNotOnTrial(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	s := New(DefaultR0, 0)
	m := measure([]told{
		{part: "a", port: 80, sequence: 7, variation: "canary", proxy: 1, n: 100, x: 100},
		{part: "a", port: 80, sequence: 7, variation: "stable", proxy: 1, n: 2000, x: 5},
	})
	m.Cells[1].Latency = []uint64{990, 1000, 5, 5}
	s.Count(&c, &m)
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	s.Count(&c, &m)
	if got := judged(s); got.Errors.E != 1 || got.Verdict != NoData || s.canary.over != 0 {
		t.Errorf("the canary of before has %d requests: %+v", s.canary.over, got)
	}
	if s.threshold != 1 || s.width != 4 {
		t.Errorf("what is above bucket %d of %d is slow, want 1 of 4", s.threshold, s.width)
	}
}

func TestWhatIsSlowStaysWhenTooLittleIsKnown(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	s := New(DefaultR0, 0)
	s.threshold, s.width = 3, 8
	m := measure([]told{{part: "a", port: 80, sequence: 7, variation: "stable", proxy: 1, n: minLatencies - 1}})
	s.Count(&c, &m)
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	if s.threshold != 3 || s.width != 8 {
		t.Errorf("what is above bucket %d of %d is slow, want 3 of 8", s.threshold, s.width)
	}
}

func TestLatenciesOfTheWarmupDoNotCount(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	s := New(DefaultR0, 0)
	s.threshold, s.width = 0, 2
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}, LatencyFrom: noon.Add(10 * time.Second)})
	m := measure([]told{
		{part: "a", tick: 0, port: 80, sequence: 7, variation: "canary", proxy: 1, n: 100, x: 50},
		{part: "a", tick: 1, port: 80, sequence: 7, variation: "canary", proxy: 1, n: 100, x: 1},
	})
	s.Count(&c, &m)
	if got := s.canary.latency; got.n != 100 || got.x != 1 {
		t.Errorf("%d of %d requests are slow, want 1 of 100", got.x, got.n)
	}
}

// The run after a check goes on where the check ended, and counts none of its requests.
func TestARunBeginsAnewAfterItsCohortCheck(t *testing.T) {
	c := DefaultConfig("check", "stable")
	s := New(DefaultR0, 1)
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	m := measure([]told{{part: "a", sequence: 7, proxy: 1, variation: "check", n: 1000, x: 30}, {part: "a", sequence: 7, proxy: 1, variation: "stable", n: 9000, x: 9}})
	s.Count(&c, &m)
	next := s.WithRatio(2.31)
	if next.R0() != 2.31 || next.Restarts() != 1 {
		t.Errorf("r0 is %v after %d restarts", next.R0(), next.Restarts())
	}
	if d := cmp.Diff(s.Cursor(), next.Cursor()); d != "" {
		t.Errorf("the cursor (-check +run):\n%s", d)
	}
	if canary, control, _ := next.Counted(); canary+control > 0 {
		t.Errorf("%d and %d cells are counted already", canary, control)
	}
	data, err := next.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Decode(data); err != nil || back.R0() != 2.31 {
		t.Errorf("read back with r0 %v: %v", back.R0(), err)
	}
	next.Enter(Stage{Number: 1, Sequences: []uint64{8}})
	m = measure([]told{{part: "a", sequence: 7, proxy: 1, variation: "check", n: 1000, x: 1000}})
	next.Count(&c, &m)
	if canary, _, _ := next.Counted(); canary > 0 {
		t.Errorf("%d cells of the check are counted to the run", canary)
	}
}

func TestACohortCheckRaisesTheRatio(t *testing.T) {
	c := DefaultConfig("check", "stable")
	cases := map[string]struct {
		canary, control told
		want            func(r0 float64, known bool) bool
	}{
		"nothing was seen": {told{}, told{}, func(r0 float64, known bool) bool { return r0 == DefaultR0 && !known }},
		"few failures say little": {told{n: 100, x: 1}, told{n: 900, x: 9}, func(r0 float64, known bool) bool {
			return r0 > 2 && r0 < MaxR0 && known
		}},
		"the cohort fails as the others do": {told{n: 100_000, x: 1000}, told{n: 900_000, x: 9000}, func(r0 float64, known bool) bool { return r0 == DefaultR0 && known }},
		"the cohort fails three times as often": {told{n: 100_000, x: 3000}, told{n: 900_000, x: 9000}, func(r0 float64, known bool) bool {
			return r0 > 3 && r0 < 3.5 && known
		}},
		"the cohort fails a hundred times as often": {told{n: 100_000, x: 10_000}, told{n: 900_000, x: 900}, func(r0 float64, known bool) bool {
			return r0 == MaxR0 && known
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(DefaultR0, 0)
			s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
			a, b := tc.canary, tc.control
			a.part, a.sequence, a.proxy, a.variation = "a", 7, 1, "check"
			b.part, b.sequence, b.proxy, b.variation = "a", 7, 1, "stable"
			if a.n > 0 {
				m := measure([]told{a, b})
				s.Count(&c, &m)
			}
			if r0, known := RatioAfterCheck(s); !tc.want(r0, known) {
				t.Errorf("the ratio is %v, and that is known: %v", r0, known)
			}
		})
	}
}

func TestAConfigurationIsChecked(t *testing.T) {
	good := DefaultConfig("b", "a")
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	cases := map[string]func(*Config){
		`canary "" and control "a" are not two variations`:  func(c *Config) { c.Canary = "" },
		`canary "b" and control "" are not two variations`:  func(c *Config) { c.Control = "" },
		`canary "b" and control "b" are not two variations`: func(c *Config) { c.Control = "b" },
		"alpha 0.6 is not in (0, 0.5]":                      func(c *Config) { c.Alpha = 0.6 },
		"alpha NaN is not in (0, 0.5]":                      func(c *Config) { c.Alpha = math.NaN() },
		"margin +Inf is not above 0":                        func(c *Config) { c.Margin = math.Inf(1) },
		"alpha 0 is not in (0, 0.5]":                        func(c *Config) { c.Alpha = 0 },
		"ignoreBelow -1 is not in [0, 1)":                   func(c *Config) { c.IgnoreBelow = -1 },
		"ignoreSlowBelow 1 is not in [0, 1)":                func(c *Config) { c.IgnoreSlowBelow = 1 },
		"margin 0 is not above 0":                           func(c *Config) { c.Margin = 0 },
	}
	for want, change := range cases {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || err.Error() != "reading the configuration of the judge: "+want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
