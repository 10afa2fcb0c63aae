// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const part = "app/edge/50dc6c495c0c9188"

// result are counts of one query by minutes after the begin.
func result(variation int, m metric, counts map[int]float64) types.MetricDataResult {
	r := types.MetricDataResult{Id: aws.String(queryID(variation, m)), StatusCode: types.StatusCodeComplete}
	for after := range 200 {
		if count, has := counts[after]; has {
			r.Timestamps, r.Values = append(r.Timestamps, began.Add(time.Duration(after)*time.Minute)), append(r.Values, count)
		}
	}
	return r
}

// told is the part of a cell that the test names.
type told struct {
	Minute                       int
	Variation                    string
	Sequence                     uint64
	Over, Failed, ClientErrors   uint64
	Proxies, Telling, LoudestBad uint64
}

func tellCells(cells []traffic.Cell) (all []told) {
	for _, c := range cells {
		all = append(all, told{int(c.Start.Sub(began) / time.Minute), c.Variation, c.Sequence, c.Over, c.Failed, c.ClientErrors, c.Spread.Proxies, c.Coverage.Telling, c.Loudest.X})
	}
	return all
}

func TestCountsAreToldWhenTheyAreComplete(t *testing.T) {
	w := newWorld(t)
	w.applySplit(3, 1_000)
	for range 10 { // looks until minute 5
		w.observeSplit()
		w.passTime(30 * time.Second)
	}
	w.observeSplit()
	w.data = &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{
		result(0, requests, map[int]float64{0: 9, 1: 10, 2: 12}), result(0, answers5xx, map[int]float64{1: 3}),
		result(0, connectionErrors, map[int]float64{1: 2, 2: 40}), result(0, answers4xx, map[int]float64{1: 4, 2: 1}),
		result(1, requests, map[int]float64{0: 80, 1: 90}),
	}}
	m, err := w.router.Measure(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []told{
		{0, "canary", 0, 9, 0, 0, 1, 1, 0}, // the settle time is not over
		{0, "stable", 0, 80, 0, 0, 1, 1, 0},
		{1, "canary", 3, 10, 5, 4, 1, 1, 5},
		{1, "stable", 3, 90, 0, 0, 1, 1, 0},
	}
	if d := cmp.Diff(want, tellCells(m.Cells)); d != "" || m.More || m.Wanted != 1 {
		t.Errorf("the measurement is %+v; cells (-want +got):\n%s", m, d)
	}
	if in := w.asked[0]; !in.StartTime.Equal(began) || !in.EndTime.Equal(began.Add(2*time.Minute)) || len(in.MetricDataQueries) != 8 {
		t.Errorf("asked is for %s to %s by %d queries", in.StartTime, in.EndTime, len(in.MetricDataQueries))
	}
	if again, err := w.router.Measure(t.Context(), m.Next); err != nil || len(again.Cells) > 0 || len(w.asked) != 1 {
		t.Errorf("before the next minute is complete %d requests are made, and told is %+v (%v)", len(w.asked), again, err)
	}
	w.passTime(time.Minute)
	m, err = w.router.Measure(t.Context(), m.Next)
	if err != nil {
		t.Fatal(err)
	}
	want = []told{{2, "canary", 3, 12, 12, 0, 1, 1, 12}} // a connection that fails several times for one request
	if d := cmp.Diff(want, tellCells(m.Cells)); d != "" {
		t.Errorf("the next cells (-want +got):\n%s", d)
	}
}

func TestARouterWithoutASplitCountsNothing(t *testing.T) {
	w := newWorld(t)
	if m, err := w.router.Measure(t.Context(), nil); err != nil || len(m.Cells) > 0 || len(w.asked) > 0 {
		t.Errorf("told is %+v (%v)", m, err)
	}
}

func TestTheCountsOfALongTimeComeInSeveralMeasurements(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(100 * time.Minute)
	counts := map[int]float64{}
	for i := range 97 {
		counts[i] = 5
	}
	var at traffic.Cursor
	over, measurements := uint64(0), 0
	for more := true; more; measurements++ {
		all := result(0, requests, counts)
		w.data = &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{all}}
		m, err := w.router.Measure(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Cells {
			over += c.Over
		}
		at, more = m.Next, m.More
	}
	if over != 97*5 || measurements != 4 {
		t.Errorf("%d requests are told in %d measurements, want %d in 4", over, measurements, 97*5)
	}
}

// Each cursor that ends within a minute leads to the cells after it, and to no cell twice.
func TestACursorWithinAMinuteMissesNoCell(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(5 * time.Minute)
	w.data = &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{
		result(0, requests, map[int]float64{0: 1, 1: 1}), result(1, requests, map[int]float64{0: 1, 1: 1}),
	}}
	all, err := w.router.Measure(t.Context(), nil)
	if err != nil || len(all.Cells) != 4 {
		t.Fatalf("told is %+v (%v), want four cells", all, err)
	}
	for i, cell := range all.Cells {
		for name, tc := range map[string]struct {
			cell uint64
			want int
		}{"read up to before": {cell.Position.Cell - 1, 4 - i}, "read": {cell.Position.Cell, 3 - i}} {
			m, err := w.router.Measure(t.Context(), traffic.Cursor{part: {Epoch: epoch, Cell: tc.cell}})
			if err != nil || len(m.Cells) != tc.want {
				t.Errorf("cell %d is %s, and told are %d cells (%v), want %d", i, name, len(m.Cells), err, tc.want)
			}
		}
	}
}

func TestMetricDataThatIsNoCountIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cloudwatch.GetMetricDataOutput)
		want   bool
	}{
		"a whole number":       {func(*cloudwatch.GetMetricDataOutput) {}, false},
		"a fraction":           {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults[0].Values[0] = 1.5 }, true},
		"less than nothing":    {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults[0].Values[0] = -1 }, true},
		"no number":            {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults[0].Values[0] = math.NaN() }, true},
		"more than can be":     {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults[0].Values[0] = math.Inf(1) }, true},
		"a value without time": {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults[0].Timestamps = nil }, true},
		"a minute twice":       {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults = slices.Repeat(o.MetricDataResults, 2) }, true},
		"an answer with no part": {func(o *cloudwatch.GetMetricDataOutput) {
			o.MetricDataResults[0].StatusCode = types.StatusCodeInternalError
		}, true},
		"pages without end": {func(o *cloudwatch.GetMetricDataOutput) { o.MetricDataResults, o.NextToken = nil, aws.String("next") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.applySplit(1, 1_000)
			w.passTime(5 * time.Minute)
			w.data = &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{result(0, requests, map[int]float64{1: 4})}}
			tc.change(w.data)
			m, err := w.router.Measure(t.Context(), nil)
			if (err != nil) != tc.want || err != nil && len(m.Cells) > 0 {
				t.Errorf("told is %+v, %v", m, err)
			}
		})
	}
}

func TestAMinuteHasTheSequenceThatWasInForceAllOfIt(t *testing.T) {
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	var periods []period
	for _, look := range []struct {
		sequence   uint64
		since, now int
	}{{1, 0, 0}, {1, 0, 30}, {1, 0, 90}, {2, 100, 100}, {2, 100, 190}, {2, 250, 260}, {2, 250, 400}} {
		periods = extendPeriods(periods, look.sequence, at(look.since), at(look.now))
	}
	for name, tc := range map[string]struct {
		from, end int
		want      uint64
	}{
		"within the first":             {0, 60, 1},
		"to its last look":             {30, 90, 1},
		"past its last look":           {40, 100, 0},
		"over a change":                {60, 120, 0},
		"within the second":            {120, 180, 2},
		"over a time without evidence": {180, 260, 0},
		"after that time":              {300, 360, 2},
		"after the last look":          {360, 420, 0},
		"before the first":             {-60, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findSequence(periods, at(tc.from), at(tc.end)); got != tc.want {
				t.Errorf("got sequence %d, want %d", got, tc.want)
			}
		})
	}
	for i := range 2 * maxPeriods {
		periods = extendPeriods(periods, uint64(i), at(500+i), at(500+i))
	}
	if len(periods) != maxPeriods {
		t.Errorf("%d periods are kept", len(periods))
	}
}

func TestAGapBetweenLooksBeginsTheSettleTimeAnew(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.observeSplit()
	w.passTime(longestGap)
	if seen := w.observeSplit(); !seen.IsEffective(1, w.now) {
		t.Errorf("after two minutes observed is %+v", seen)
	}
	w.passTime(longestGap + time.Second)
	if seen := w.observeSplit(); seen.IsEffective(1, w.now) || seen.Knowledge != traffic.Accepted {
		t.Errorf("after a gap observed is %+v", seen)
	}
}

func TestAPauseDoublesAndIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		random float64
		want   []time.Duration
	}{
		"the shortest": {0, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		"the middle":   {0.5, []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second, 24 * time.Second, 45 * time.Second, 45 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			var p pause
			for range tc.want {
				p = p.extendPause(began, tc.random)
				got = append(got, p.until.Sub(began))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the pauses (-want +got):\n%s", d)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		p := pause{throttled: rapid.IntRange(0, 1_000_000).Draw(t, "throttled")}
		if length := p.extendPause(began, rapid.Float64Range(0, 0.999).Draw(t, "random")).until.Sub(began); length <= 0 || length > longestPause {
			t.Fatalf("a pause lasts %s", length)
		}
	})
}

func FuzzMetricData(f *testing.F) {
	f.Add("v0_m0", int64(60), 4.0, "v0_m1", int64(60), 9.0)
	f.Add("v1_m0", int64(0), math.Inf(1), "v1_m0", int64(0), -1.0)
	f.Add("", int64(-1), 1e300, "v0_m3", int64(math.MaxInt32), 0.5)
	f.Fuzz(func(t *testing.T, id1 string, at1 int64, value1 float64, id2 string, at2 int64, value2 float64) {
		c := counted{}
		for _, point := range []struct {
			id    string
			at    int64
			value float64
		}{{id1, at1, value1}, {id2, at2, value2}} {
			result := types.MetricDataResult{Id: aws.String(point.id), Timestamps: []time.Time{began.Add(time.Duration(point.at%3600) * time.Second)}, Values: []float64{point.value}}
			if c.addResults([]types.MetricDataResult{result}) != nil {
				return
			}
		}
		s := span{began.Add(-2 * time.Hour), began.Add(2 * time.Hour)}
		var last traffic.Position
		for _, cell := range cellsOf(part, []string{"canary", "stable"}, s, c, func(time.Time, time.Time) uint64 { return 1 }) {
			if cell.Failed+cell.ClientErrors > cell.Over || cell.Over == 0 || cell.Position.Cell <= last.Cell || cell.Spread.X > cell.Spread.N {
				t.Fatalf("cell %+v after %+v", cell, last)
			}
			last = cell.Position
		}
	})
}
