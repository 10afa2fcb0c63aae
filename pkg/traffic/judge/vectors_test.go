// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

const vectorsFile = "../../../docs/reference/judge-vectors.json"

// vectors of docs/reference/judge-vectors.json.
type vectors struct {
	Grids      []gridVector       `json:"grids"`
	LogRatios  []logRatioVector   `json:"logRatios"`
	Dispersion []dispersionVector `json:"dispersion"`
	RateBounds []boundsVector     `json:"rateBounds"`
	Runs       []runVector        `json:"runs"`
}

type gridVector struct {
	R0     float64   `json:"r0"`
	Ratios []float64 `json:"ratios"`
}

type logRatioVector struct {
	R0      float64    `json:"r0"`
	Canary  [2]float64 `json:"canary"`
	Control [2]float64 `json:"control"`
	Micro   []int64    `json:"microNats"`
}

type dispersionVector struct {
	Canary  [][2]uint64 `json:"canary"`
	Control [][2]uint64 `json:"control"`
	Phi     float64     `json:"phi"`
}

type boundsVector struct {
	N     uint64   `json:"n"`
	X     uint64   `json:"x"`
	Phi   float64  `json:"phi"`
	Alpha float64  `json:"alpha"`
	Want  Interval `json:"bounds"`
}

type runVector struct {
	Name  string `json:"name"`
	Stage struct {
		Number    int      `json:"number"`
		Sequences []uint64 `json:"sequences"`
	} `json:"stage"`
	// Cells are those of one part, in ten seconds each.
	Cells []cellVector `json:"cells"`
	Facts struct {
		HealthThreshold int  `json:"healthThreshold"`
		MinimumSeconds  int  `json:"minimumSeconds"`
		MeasuredSeconds int  `json:"measuredSeconds"`
		Alone           bool `json:"alone,omitempty"`
	} `json:"facts"`
	Want wantVector `json:"want"`
}

type cellVector struct {
	Tick      int    `json:"tick"`
	Variation string `json:"variation"`
	Sequence  uint64 `json:"sequence"`
	// Proxies have an ID, requests and failures.
	Proxies [][3]uint64 `json:"proxies"`
}

type wantVector struct {
	Verdict Verdict  `json:"verdict"`
	Reason  Reason   `json:"reason"`
	E       float64  `json:"e"`
	Phi     float64  `json:"phi"`
	Ratio   Interval `json:"ratio"`
	Canary  Interval `json:"canary"`
	Control Interval `json:"control"`
	Decides Interval `json:"canaryDecides"`
}

// compute fills in the results.
func (v *vectors) compute() {
	for i := range v.Grids {
		g := gridOf(v.Grids[i].R0)
		v.Grids[i].Ratios = g.ratio[:]
	}
	for i := range v.LogRatios {
		l := &v.LogRatios[i]
		g := gridOf(l.R0)
		l.Micro = nil
		for at := range g.ratio {
			l.Micro = append(l.Micro, g.logRatio(at, tally{l.Canary[0], l.Canary[1]}, tally{l.Control[0], l.Control[1]}))
		}
	}
	for i := range v.Dispersion {
		d := &v.Dispersion[i]
		var canary, control sums
		for _, u := range d.Canary {
			canary.unit(u[0], u[1])
		}
		for _, u := range d.Control {
			control.unit(u[0], u[1])
		}
		d.Phi = dispersion(&canary, &control)
	}
	for i := range v.RateBounds {
		b := &v.RateBounds[i]
		b.Want = rateBounds(b.N, b.X, b.Phi, b.Alpha)
	}
	for i := range v.Runs {
		v.Runs[i].compute()
	}
}

func (r *runVector) compute() {
	var all []told
	for _, c := range r.Cells {
		for _, p := range c.Proxies {
			all = append(all, told{part: "a", tick: c.Tick, port: 80, sequence: c.Sequence, variation: c.Variation, proxy: p[0], n: p[1], x: p[2]})
		}
	}
	m := measure(all)
	s := New(DefaultR0, 0)
	s.Enter(Stage{Number: r.Stage.Number, Sequences: r.Stage.Sequences})
	c := DefaultConfig("canary", "stable")
	s.Count(&c, &m)
	a := Judge(s, &c, &Facts{
		Now: noon, HealthThreshold: r.Facts.HealthThreshold, Minimum: time.Duration(r.Facts.MinimumSeconds) * time.Second,
		Measured: time.Duration(r.Facts.MeasuredSeconds) * time.Second, SinceStep: time.Hour, Alone: r.Facts.Alone,
	})
	r.Want = wantVector{a.Verdict, a.Reason, a.Errors.E, a.Errors.Phi, a.Errors.Ratio, a.Canary.ErrorRate, a.Control.ErrorRate, a.Canary.Decides}
}

func TestTheVectorsAreWhatTheCodeComputes(t *testing.T) {
	raw, err := os.ReadFile(filepath.FromSlash(vectorsFile))
	if err != nil {
		t.Fatal(err)
	}
	var want, got vectors
	for _, into := range []*vectors{&want, &got} {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	if len(want.Grids) == 0 || len(want.LogRatios) == 0 || len(want.Dispersion) == 0 || len(want.RateBounds) == 0 || len(want.Runs) == 0 {
		t.Fatal("vectors are missing")
	}
	got.compute()
	if golden.Updates() {
		written, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.FromSlash(vectorsFile), append(written, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	microNats := gocmp.Comparer(func(a, b int64) bool { return a-b <= 1 && b-a <= 1 }) // a processor may round otherwise
	if d := gocmp.Diff(want, got, microNats, cmpopts.EquateApprox(1e-6, 0)); d != "" {
		t.Errorf("what the code computes (-vectors +code):\n%s", d)
	}
}

// The bounds of a rate, by adding up the bet over many rates.
func TestTheBoundsOfARateAreThoseOfANaiveMixture(t *testing.T) {
	const parts = 20_000
	for _, c := range []struct{ n, x uint64 }{{1, 0}, {1, 1}, {20, 0}, {20, 3}, {20, 20}, {500, 2}, {500, 60}} {
		n, x := float64(c.n), float64(c.x)
		likelihood := func(p float64) float64 { return math.Pow(p, x) * math.Pow(1-p, n-x) }
		// A rate sin²(a) has the density of Beta(1/2, 10), but for a constant, where a is weighted by
		// cos(a)^19.
		bet, weight := 0.0, 0.0
		for i := range parts {
			a := (float64(i) + 0.5) / parts * math.Pi / 2
			w := math.Pow(math.Cos(a), 19)
			bet, weight = bet+w*likelihood(math.Pow(math.Sin(a), 2)), weight+w
		}
		bet /= weight
		got := rateBounds(c.n, c.x, 1, Shown)
		for _, p := range []float64{got.Lower, got.Upper} {
			if p == 0 || p == 1 {
				continue
			}
			if paid := bet / likelihood(p); math.Abs(paid*Shown-1) > 1e-3 {
				t.Errorf("%d of %d: at the bound %v the bet has paid %v, want %v", c.x, c.n, p, paid, 1/Shown)
			}
		}
		if (c.x == 0) != (got.Lower == 0) || (c.x == c.n) != (got.Upper == 1) {
			t.Errorf("%d of %d: the bounds are %v", c.x, c.n, got)
		}
	}
}
