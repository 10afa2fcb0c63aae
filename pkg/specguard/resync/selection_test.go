// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseThreshold(t *testing.T) {
	for text, want := range map[string]Percent{
		"1%": 1, "10%": 10, "99%": 99, "100%": 100, "": 10,
		"0.01": 1, "0.07": 7, "0.1": 10, "0.10": 10, "0.2": 20, "0.29": 29, "0.58": 58, "0.99": 99, "1": 100, "1.0": 100, "1.00": 100,
	} {
		if got, err := ParseThreshold(text); err != nil || got != want {
			t.Errorf("ParseThreshold(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0%", "101%", "10", "0", "0.0", "0.00", "0.005", "0.125", "0.", ".5", "1.", "1.01", "1.000", "2", "-0.1", "0,1", "1e-1", "00.1", "0.1%", "1.5%", "-1%", "10 %", "010%", "%", "1e1%", "10%\n", "999999999999999999999%"} {
		got, err := ParseThreshold(text)
		problem, ok := err.(*InputError) //nolint:errorlint // it is documented to be one
		if !ok || problem.Kind != ProblemNotAPercentage || got != DefaultThreshold {
			t.Errorf("ParseThreshold(%q) = %d, %v; want the default and a problem", text, got, err)
		}
	}
}

func TestPercentOf(t *testing.T) {
	tests := map[string]struct {
		share Percent
		total int
		want  int
	}{
		"nothing guarded":               {share: 10, total: 0, want: 1},
		"less than one is one":          {share: 10, total: 3, want: 1},
		"exactly one":                   {share: 10, total: 10, want: 1},
		"rounded up":                    {share: 10, total: 11, want: 2},
		"7 % of 100, which floats miss": {share: 7, total: 100, want: 7},
		"29 % of 100, likewise":         {share: 29, total: 100, want: 29},
		"all":                           {share: 100, total: 12345, want: 12345},
		"a share of nothing":            {share: 0, total: 1000, want: 10},
		"more than all":                 {share: 200, total: 1000, want: 1000},
		"a negative total":              {share: 10, total: -5, want: 1},
		"as many as there can be":       {share: 100, total: math.MaxInt, want: math.MaxInt},
		"as few as there can be":        {share: 100, total: math.MinInt, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.share.Of(tc.total); got != tc.want {
				t.Errorf("%d %% of %d is %d, want %d", tc.share, tc.total, got, tc.want)
			}
		})
	}
}

// TestPercentOfAgreesWithFractions compares with exact fractions of any size.
func TestPercentOfAgreesWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(1, 100).Draw(t, "share")
		total := rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(0, math.MaxInt)).Draw(t, "total")
		exact := new(big.Int).Mul(big.NewInt(int64(share)), big.NewInt(int64(total)))
		want, rest := new(big.Int).QuoRem(exact, big.NewInt(100), new(big.Int))
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if want.Sign() == 0 {
			want.SetInt64(1)
		}
		if got := Percent(share).Of(total); want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%d %% of %d is %d, want %s", share, total, got, want)
		}
	})
}

func object(name string) Object {
	return Object{Namespace: "shop", Name: name, Kind: "Deployment", APIVersion: "apps/v1"}
}

func due(name string, ago time.Duration) Candidate {
	return Candidate{Object: object(name), Due: testNow.Add(-ago)}
}

func names(objects []Object) []string {
	var got []string
	for _, o := range objects {
		got = append(got, o.Name)
	}
	return got
}

func TestSelect(t *testing.T) {
	roomFor := func(n int) Budget { return Budget{Total: n, Threshold: 100} }
	in := func(c Candidate, environment string) Candidate { c.Environment = environment; return c }
	asked := func(c Candidate) Candidate { c.Requested = true; return c }
	but := func(c Candidate, o Obstacle) Candidate { c.Settled = o; return c }
	tests := map[string]struct {
		pool  Pool
		start []string
		wait  map[string]Obstacle
	}{
		"the longest due first": {
			pool:  Pool{Installation: roomFor(2), Candidates: []Candidate{due("a", time.Minute), due("b", time.Hour), due("c", time.Second)}},
			start: []string{"b", "a"}, wait: map[string]Obstacle{"c": ObstacleThreshold},
		},
		"by name among those due at the same time": {
			pool:  Pool{Installation: roomFor(2), Candidates: []Candidate{due("c", 0), due("a", 0), due("b", 0)}},
			start: []string{"a", "b"}, wait: map[string]Obstacle{"c": ObstacleThreshold},
		},
		"what somebody waits for before what is due the longest": {
			pool:  Pool{Installation: roomFor(2), Candidates: []Candidate{due("a", time.Minute), due("b", time.Hour), asked(due("c", 0))}},
			start: []string{"c", "b"}, wait: map[string]Obstacle{"a": ObstacleThreshold},
		},
		"what runs already takes room": {
			pool: Pool{Installation: Budget{Total: 3, Running: 2, Threshold: 100}, Candidates: []Candidate{due("a", 0), due("b", 0)}},
			wait: map[string]Obstacle{"b": ObstacleThreshold}, start: []string{"a"},
		},
		"more runs than may": {
			pool: Pool{Installation: Budget{Total: 3, Running: 9, Threshold: 100}, Candidates: []Candidate{due("a", 0)}},
			wait: map[string]Obstacle{"a": ObstacleThreshold},
		},
		"a burst does not share the one free slot": {
			pool:  Pool{Installation: Budget{Total: 10, Threshold: 10}, Candidates: []Candidate{due("a", 0), due("b", 0), due("c", 0)}},
			start: []string{"a"}, wait: map[string]Obstacle{"b": ObstacleThreshold, "c": ObstacleThreshold},
		},
		"never more than the maximum": {
			pool:  Pool{Installation: roomFor(100), MaxConcurrentChecks: 1, Candidates: []Candidate{due("a", 0), due("b", 0)}},
			start: []string{"a"}, wait: map[string]Obstacle{"b": ObstacleThreshold},
		},
		"a maximum of nothing is one": {
			pool:  Pool{Installation: roomFor(100), MaxConcurrentChecks: -1, Candidates: []Candidate{due("a", 0), due("b", 0)}},
			start: []string{"a"}, wait: map[string]Obstacle{"b": ObstacleThreshold},
		},
		"what is not due does not start": {
			pool:  Pool{Installation: roomFor(100), Candidates: []Candidate{due("a", -time.Second), due("b", 0), {Object: object("c")}}},
			start: []string{"b"}, wait: map[string]Obstacle{"a": ObstacleNotDue, "c": ObstacleOff},
		},
		"what is not settled takes no room": {
			pool:  Pool{Installation: roomFor(1), Candidates: []Candidate{but(due("a", time.Hour), ObstacleClaimed), due("b", 0)}},
			start: []string{"b"}, wait: map[string]Obstacle{"a": ObstacleClaimed},
		},
		"a full Environment does not hold up another": {
			pool: Pool{
				Installation: roomFor(100), Environments: map[string]Budget{"prod": {Total: 10, Threshold: 10}},
				Candidates: []Candidate{in(due("a", 3), "prod"), in(due("b", 2), "prod"), in(due("c", 1), "dev"), due("d", 0)},
			},
			start: []string{"a", "c", "d"}, wait: map[string]Obstacle{"b": ObstacleEnvironmentThreshold},
		},
		"an Environment has a slot for each of its share": {
			pool: Pool{
				Installation: roomFor(100), Environments: map[string]Budget{"prod": {Total: 30, Threshold: 10}},
				Candidates: []Candidate{in(due("a", 4), "prod"), in(due("b", 3), "prod"), in(due("c", 2), "prod"), in(due("d", 1), "prod")},
			},
			start: []string{"a", "b", "c"}, wait: map[string]Obstacle{"d": ObstacleEnvironmentThreshold},
		},
		"a full Environment takes no room from the installation": {
			pool: Pool{
				Installation: roomFor(1), Environments: map[string]Budget{"prod": {Total: 10, Running: 1, Threshold: 10}},
				Candidates: []Candidate{in(due("a", 3), "prod"), due("b", 2)},
			},
			start: []string{"b"}, wait: map[string]Obstacle{"a": ObstacleEnvironmentThreshold},
		},
		"nothing": {pool: Pool{Installation: roomFor(1)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.pool.Now = testNow
			if tc.pool.MaxConcurrentChecks == 0 {
				tc.pool.MaxConcurrentChecks = 100
			}
			got := Select(tc.pool)
			if diff := cmp.Diff(tc.start, names(got.Start)); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
			var wait map[string]Obstacle
			for _, w := range got.Wait {
				if wait == nil {
					wait = map[string]Obstacle{}
				}
				wait[w.Object.Name] = w.Obstacle
			}
			if diff := cmp.Diff(tc.wait, wait); diff != "" {
				t.Errorf("wait (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenToLookAgain(t *testing.T) {
	five := testNow.Add(5 * time.Minute)
	tests := map[string]struct {
		candidate Candidate
		want      time.Time
	}{
		"without room, after the recheck interval": {candidate: Candidate{Due: testNow, RecheckInterval: time.Minute}, want: testNow.Add(time.Minute)},
		"without room, after 5 minutes":            {candidate: Candidate{Due: testNow}, want: five},
		"an interval of nothing is the default":    {candidate: Candidate{Due: testNow, RecheckInterval: -time.Minute}, want: five},
		"not due, when it is":                      {candidate: Candidate{Due: testNow.Add(time.Hour)}, want: testNow.Add(time.Hour)},
		"off, never":                               {candidate: Candidate{}},
		"no longer guarded, never":                 {candidate: Candidate{Due: testNow, Settled: ObstacleNotGuarded}},
		"claimed, after the interval":              {candidate: Candidate{Due: testNow, Settled: ObstacleClaimed}, want: five},
		"an obstacle of tomorrow, likewise":        {candidate: Candidate{Due: testNow, Settled: "Eclipse"}, want: five},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Select(Pool{Now: testNow, Candidates: []Candidate{tc.candidate}, Installation: Budget{Total: 10, Running: 10, Threshold: 100}, MaxConcurrentChecks: 100})
			if len(got.Wait) != 1 || !got.Wait[0].Until.Equal(tc.want) {
				t.Errorf("waiting %v, want until %s", got.Wait, tc.want)
			}
		})
	}
}

func drawPool(t *rapid.T) Pool {
	budget := func(name string) Budget {
		return Budget{
			Total: rapid.IntRange(0, 40).Draw(t, name+" total"), Running: rapid.IntRange(0, 3).Draw(t, name+" running"),
			Threshold: Percent(rapid.IntRange(1, 100).Draw(t, name+" threshold")),
		}
	}
	p := Pool{
		Now: testNow, MaxConcurrentChecks: rapid.IntRange(-1, 12).Draw(t, "max"), Installation: budget("all"),
		Environments: map[string]Budget{"prod": budget("prod"), "dev": budget("dev")},
	}
	for i := range rapid.IntRange(0, 15).Draw(t, "candidates") {
		c := due(fmt.Sprintf("w%02d", i), time.Duration(rapid.IntRange(-1, 3).Draw(t, "due"))*time.Minute)
		c.Object.Namespace = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
		c.Environment = rapid.SampledFrom([]string{"", "prod", "dev", "other"}).Draw(t, "environment")
		c.Requested = rapid.IntRange(0, 4).Draw(t, "requested") == 0
		c.Settled = rapid.SampledFrom([]Obstacle{ObstacleNone, ObstacleNone, ObstacleNone, ObstacleClaimed}).Draw(t, "settled")
		p.Candidates = append(p.Candidates, c)
	}
	return p
}

// selectOneByOne sorts everything, then asks again and again for the first that
// fits, counting all that runs anew each time.
func selectOneByOne(p Pool) []Object {
	sorted := slices.Clone(p.Candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		switch {
		case a.Requested != b.Requested && a.Requested:
			return -1
		case a.Requested != b.Requested:
			return 1
		case a.Due.Before(b.Due):
			return -1
		case b.Due.Before(a.Due):
			return 1
		}
		key := func(o Object) string { return o.Namespace + "/" + o.Name + "/" + o.Kind + "/" + o.APIVersion }
		if key(a.Object) < key(b.Object) {
			return -1
		}
		return 1
	})
	var started []Candidate
	fits := func(c Candidate) bool {
		if slices.ContainsFunc(started, func(s Candidate) bool { return s.Object == c.Object }) || c.Settled != "" || c.Due.After(p.Now) {
			return false
		}
		share := func(b Budget) int { return max(1, int(math.Ceil(float64(int(b.Threshold)*b.Total)/100))) }
		mates := 0
		for _, s := range started {
			if s.Environment == c.Environment {
				mates++
			}
		}
		if b, ok := p.Environments[c.Environment]; ok && b.Running+mates >= share(b) {
			return false
		}
		return p.Installation.Running+len(started) < min(share(p.Installation), max(p.MaxConcurrentChecks, 1))
	}
	for {
		i := slices.IndexFunc(sorted, fits)
		if i < 0 {
			break
		}
		started = append(started, sorted[i])
	}
	var objects []Object
	for _, c := range started {
		objects = append(objects, c.Object)
	}
	return objects
}

func TestSelectAgreesWithPickingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		given := slices.Clone(p.Candidates)
		got := Select(p)
		if diff := cmp.Diff(selectOneByOne(p), got.Start); diff != "" {
			t.Fatalf("start (-want +got):\n%s", diff)
		}
		if len(got.Start)+len(got.Wait) != len(p.Candidates) {
			t.Fatalf("%d start and %d wait of %d", len(got.Start), len(got.Wait), len(p.Candidates))
		}
		for _, w := range got.Wait {
			if !w.Until.After(p.Now) {
				t.Fatalf("%v is looked at again at once", w)
			}
		}
		if diff := cmp.Diff(given, p.Candidates); diff != "" {
			t.Fatalf("the caller's list was changed:\n%s", diff)
		}
		slices.Reverse(p.Candidates)
		if diff := cmp.Diff(got, Select(p)); diff != "" {
			t.Fatalf("the order of candidates matters (-one +other):\n%s", diff)
		}
	})
}

// TestNobodyStarves: with one slot, checks that take a while, and periods that are
// far too short for that, every object is checked again and again.
func TestNobodyStarves(t *testing.T) {
	const objects, turns = 20, 200
	checked := map[string]int{}
	last, stored := map[string]time.Time{}, map[string]time.Time{}
	now := testNow
	for range turns {
		p := Pool{Now: now, Installation: Budget{Total: objects, Threshold: 1}, MaxConcurrentChecks: 1}
		for i := range objects {
			name := fmt.Sprintf("w%02d", i)
			next := NextCheck(Timing{UID: name, Period: time.Second, LastCheck: last[name], Stored: stored[name], Now: now})
			stored[name] = next.At
			p.Candidates = append(p.Candidates, Candidate{Object: object(name), Due: next.At})
		}
		for _, o := range Select(p).Start {
			checked[o.Name]++
			last[o.Name] = now
		}
		now = now.Add(time.Minute)
	}
	for i := range objects {
		if n := checked[fmt.Sprintf("w%02d", i)]; n != turns/objects {
			t.Errorf("w%02d was checked %d times, want %d", i, n, turns/objects)
		}
	}
}
