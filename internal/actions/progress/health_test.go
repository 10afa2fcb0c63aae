// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestFormatE(t *testing.T) {
	for name, tc := range map[string]struct {
		of   v1alpha1.Decimal
		want string
	}{
		"a small number has one decimal":          {"0.8012", "0.8"},
		"a whole number has none":                 {"1", "1"},
		"from 10 on a number has none":            {"199.6", "200"},
		"a large number has an exponent":          {"210345.5", "2.1e5"},
		"the highest number is a bound":           {"999999999", "1e9 or more"},
		"no number is unknown":                    {"", Unknown},
		"a text of a later version stays as text": {"many", "many"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatE(tc.of); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSparkline(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		limit  v1alpha1.Decimal
		want   string
	}{
		"no value has no bar":                      {nil, "200", ""},
		"a payment below the stake is the lowest":  {[]float64{0, 0.2, 1}, "200", "▁▁▁"},
		"the bar that fails is the highest":        {[]float64{199, 200, 1e9}, "200", "▇██"},
		"between them the scale is of logarithms":  {[]float64{3, 14.1, 14.2}, "200", "▂▄▄"},
		"without a limit there is no scale":        {[]float64{3}, "", ""},
		"a limit of at most the stake is no scale": {[]float64{3}, "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Sparkline(tc.values, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A trail has the newest evaluations of one run, each once, in their order.
func TestTrail_KeepsTheNewestEvaluations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trail Trail
		var want []float64
		run, evaluated := int64(1), int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "looks") {
			if rapid.IntRange(0, 20).Draw(t, "run") == 0 {
				run, want = run+1, nil
			}
			a := &v1alpha1.RolloutAnalysis{Run: run}
			isNew := rapid.Bool().Draw(t, "new") || len(want) == 0
			if isNew {
				evaluated++
			}
			a.EvaluationTime = new(metav1.NewTime(noon.Add(time.Duration(evaluated) * time.Second)))
			a.Errors = &v1alpha1.HealthComparison{EValue: v1alpha1.Decimal(strconv.Itoa(int(evaluated)))}
			if isNew {
				want = append(want, float64(evaluated))
			}
			trail = trail.See(&v1alpha1.RolloutStatus{Analysis: a})
		}
		want = want[max(0, len(want)-maxTrail):]
		if diff := cmp.Diff(want, trail.Errors); len(want)+len(trail.Errors) > 0 && diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
	if got := (Trail{}).See(nil).See(&v1alpha1.RolloutStatus{}); len(got.Errors) > 0 {
		t.Errorf("without an analysis: %+v", got)
	}
}

func TestExplain_ComparesBothVariations(t *testing.T) {
	comparison := func(e v1alpha1.Decimal) *v1alpha1.HealthComparison {
		return &v1alpha1.HealthComparison{EValue: e, FailsAt: "200", Dispersion: "1"}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.HealthResult)
		want   string
	}{
		"a bet that has not paid":       {func(h *v1alpha1.HealthResult) { h.Errors = comparison("0.8") }, "Errors OK, Samples OK"},
		"a bet that has paid":           {func(h *v1alpha1.HealthResult) { h.Errors = comparison("200") }, "Errors Unknown, Samples OK"},
		"a number of a later version":   {func(h *v1alpha1.HealthResult) { h.Errors = comparison("many") }, "Errors Unknown, Samples OK"},
		"latency that is judged":        {func(h *v1alpha1.HealthResult) { h.Errors, h.Latency = comparison("1"), comparison("1") }, "Errors OK, Latency OK, Samples OK"},
		"no comparison tells no number": {func(*v1alpha1.HealthResult) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			h := &r.Status.Rollout.Analysis.HealthResult
			h.Variations = []v1alpha1.VariationHealth{{Variation: "a", Samples: 1}, {Variation: "b", Samples: 1000}}
			tc.change(h)
			var got []string
			for _, g := range Explain(&Question{Release: r, Now: noon}).Gates {
				if g.Name == "Errors" || g.Name == "Latency" || g.Name == "Samples" {
					got = append(got, g.Name+" "+string(g.State))
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeCounts(t *testing.T) {
	j := &Judge{Gaps: 2, Variations: []v1alpha1.VariationHealth{{Variation: "a", Samples: 1, Cells: 1}, {Variation: "b", Samples: 20871, Cells: 28}}}
	if diff := cmp.Diff([]string{"a: 1 request in 1 cell", "b: 20,871 requests in 28 cells", "2 gaps"}, DescribeCounts(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := DescribeCounts(&Judge{}); got != nil {
		t.Errorf("without variations: %q", got)
	}
}
