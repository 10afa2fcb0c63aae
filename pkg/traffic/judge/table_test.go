// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// situation of the table.
type situation struct {
	name string
	make func() world
	// alike says that the canary is as good as the control; most is the highest part of the runs
	// that may fail then, median the latest median of those that must.
	alike bool
	most  float64
	// median is 0 where it is shown alone.
	median int
	// long ones have few runs.
	long bool
}

func vary(change func(*world)) func() world {
	return func() world {
		w := usual()
		change(&w)
		return w
	}
}

// outage of both arms.
func outage(from, to int, times float64) func(int) float64 {
	return func(at int) float64 {
		if at >= from && at < to {
			return times
		}
		return 1
	}
}

func situations() []situation {
	var out []situation
	for _, share := range []float64{0.05, 0.1} {
		add := func(name string, change func(*world)) {
			out = append(out, situation{name: fmt.Sprintf("alike, %.0f %%: %s", share*100, name), alike: true, most: DefaultAlpha, make: vary(func(w *world) {
				w.share = share
				w.config = func(c *Config) { c.IgnoreBelow = 0 } // so that the bet alone decides
				change(w)
			})})
		}
		add("independent errors", func(*world) {})
		for _, burst := range []int{5, 20} {
			add(fmt.Sprintf("bursts of %d, 10 equal proxies", burst), func(w *world) { w.burst = burst })
			add(fmt.Sprintf("bursts of %d, 50 unequal proxies", burst), func(w *world) { w.burst, w.proxies = burst, zipf(50) })
			add(fmt.Sprintf("bursts of %d, one proxy", burst), func(w *world) { w.burst, w.proxies, w.parts = burst, equal(1), 1 })
		}
		add("2 % of 10,000 users own all errors", func(w *world) { w.users = &users{n: 10_000, bad: 0.02} })
		add("0.5 % of 10,000 users own all errors", func(w *world) { w.users = &users{n: 10_000, bad: 0.005} })
		add("heavy-tailed users, 2 % own all errors", func(w *world) { w.users = &users{n: 10_000, bad: 0.02, tail: 1.3} })
		out[len(out)-1].most = 0.08
		add("heavy-tailed users after a cohort check", func(w *world) { w.users, w.check = &users{n: 10_000, bad: 0.02, tail: 1.3}, 300 })
		add("slow requests, independent", func(w *world) { w.slow = 1 })
		add("slow requests in bursts of 20", func(w *world) { w.slow, w.burst = 1, 20 })
		add("both arms ten times worse for five minutes", func(w *world) { w.both = outage(300, 600, 10) })
		add("both arms forty times worse for 18 minutes", func(w *world) { w.both = outage(120, 1200, 40) })
		add("5 % errors, as many as the threshold allows", func(w *world) { w.base = 0.05 })
		add("30 requests a minute", func(w *world) { w.perMinute = 30 })
	}
	worse := func(name string, median int, change func(*world)) {
		out = append(out, situation{name: name, median: median, make: vary(change)})
	}
	ten := func(w *world) { w.factor = always(10) }
	worse("10 times, 10 %", 75, ten)
	worse("10 times, 5 %", 150, func(w *world) { ten(w); w.share = 0.05 })
	worse("10 times, 10 %, 50 unequal proxies", 75, func(w *world) { ten(w); w.proxies = zipf(50) })
	worse("10 times, 10 %, bursts of 5", 900, func(w *world) { ten(w); w.burst = 5 })
	worse("10 times, 10 %, one proxy", 90, func(w *world) { ten(w); w.proxies, w.parts = equal(1), 1 })
	worse("10 times, 10 %, after ten good minutes", 900, func(w *world) {
		w.factor = func(at int) float64 { return 1 + 9*float64(min(1, at/600)) }
	})
	worse("10 times from the third stage of 5, 10, 25 % on", 900, func(w *world) {
		w.shares = []float64{0.05, 0.1, 0.25}
		w.factor = func(at int) float64 { return 1 + 9*float64(min(1, at/600)) }
	})
	worse("3 times, 10 %", 0, func(w *world) { w.factor = always(3) })
	worse("3 times, 25 %", 0, func(w *world) { w.factor, w.share = always(3), 0.25 })
	worse("10 times, 10 %, heavy-tailed users after a cohort check", 200, func(w *world) {
		ten(w)
		w.users, w.check = &users{n: 10_000, bad: 0.02, tail: 1.3}, 300
	})
	worse("10 times, 10 %, 30 requests a minute", 0, func(w *world) { ten(w); w.perMinute = 30 })
	worse("all fail, 10 %", 30, func(w *world) { w.factor = always(1000) })
	worse("5 % errors, 10 %", 60, func(w *world) { w.factor = always(16) })
	worse("10 times as many slow requests, 10 %", 90, func(w *world) { w.slow = 10 })
	for _, share := range []float64{0.1, 0.33} {
		fresh := func(name string, change func(*world)) {
			worse(fmt.Sprintf("%s, %.0f %% beside a fresh control", name, share*100), 0, func(w *world) {
				w.share, w.fresh = share, true
				change(w)
			})
		}
		fresh("alike, bursts of 5", func(w *world) { w.burst = 5; w.config = func(c *Config) { c.IgnoreBelow = 0 } })
		out[len(out)-1].alike, out[len(out)-1].most = true, DefaultAlpha
		fresh("10 times", ten)
	}
	for _, margin := range []float64{0.5, 1} {
		worse(fmt.Sprintf("as good as the control, 10 %%, passes by a margin of %.1f alone", margin), 0, func(w *world) {
			w.minutes, w.threshold = 240, 9970
			w.config = func(c *Config) { c.Margin = margin }
		})
		out[len(out)-1].long = true
	}
	return out
}

// TestTheTableOfSimulations prints the table of docs/reference/judge.md.
func TestTheTableOfSimulations(t *testing.T) {
	runs, latest := 16, 3
	if os.Getenv("PLUMBLINE_LONG") != "" {
		runs, latest = 1000, 2
	} else {
		t.Log("16 runs of each situation instead of 1,000, whose medians may be half as late again: PLUMBLINE_LONG is not set")
	}
	rows := []string{"| Canary | Runs | Fail | Half of them by | Nine of ten by | Pass at some time | Half of them by | BothBad at some time |", "|---|---|---|---|---|---|---|---|"}
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			runs := runs
			if s.long {
				runs /= 10
			}
			f := s.make().many(runs)
			row := fmt.Sprintf("| %s | %d | %.1f %% | %s | %s | %.1f %% | %s | %.1f %% |", s.name, f.runs,
				percent(f.failed, runs), seen(f.median), seen(f.p90), percent(f.passed, runs), seen(f.passMedian), percent(f.bothBad, runs))
			t.Log(row)
			rows = append(rows, row)
			switch {
			case s.alike && float64(f.failed) > allowedOf(runs, s.most):
				t.Errorf("%d of %d runs failed a canary like its control", f.failed, f.runs)
			case s.median > 0 && (f.median < 0 || f.median > s.median*latest/2):
				t.Errorf("the median is %d s, want at most %d s", f.median, s.median*latest/2)
			}
		})
	}
	if long := runs == 1000; long && runtime.GOARCH == "amd64" { // others may round differently
		checkTable(t, "simulations", rows)
	}
}

// checkTable compares with a table of docs/reference/judge.md, or writes it.
func checkTable(t *testing.T, name string, rows []string) {
	t.Helper()
	const page = "../../../docs/reference/judge.md"
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	raw, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(raw), begin)
	table, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no table of %s", page, name)
	}
	got := strings.Join(rows, "\n") + "\n"
	if golden.Updates() {
		if err := os.WriteFile(filepath.FromSlash(page), []byte(before+begin+got+end+after), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(table, got); d != "" {
		t.Errorf("%s=1 rewrites the table of %s (-page +simulations):\n%s", golden.Variable, page, d)
	}
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

// seen is a time in seconds, or that it is later than the run.
func seen(at int) string {
	if at < 0 {
		return "–"
	}
	return fmt.Sprintf("%d s", at)
}

// allowedOf runs may fail with this probability each. Of few runs one may.
func allowedOf(runs int, probability float64) float64 { return max(1, float64(runs)*probability) }
