// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// Unknown stands for a number that the status does not have.
const Unknown = "–"

// DescribeComparison returns the bet, the ratio with its bounds of 95 %, and the dispersion of a comparison.
func DescribeComparison(c *v1alpha1.HealthComparison) []string {
	return []string{
		fmt.Sprintf("e %s, fails at %s", formatE(c.EValue), formatE(c.FailsAt)),
		fmt.Sprintf("ratio %s [%s, %s]", formatDecimal(c.Ratio, 2), formatDecimal(c.RatioLow, 2), formatDecimal(c.RatioHigh, 2)),
		"φ " + formatDecimal(c.Dispersion, 1),
	}
}

// DescribeSlow returns which part of the requests is slow, of the canary and of the active variation; empty if
// latency is not judged.
func DescribeSlow(j *Judge) string {
	if j.SlowerThanMilliseconds == 0 || len(j.Variations) != 2 {
		return ""
	}
	active, canary := &j.Variations[0], &j.Variations[1]
	return fmt.Sprintf("%s %% slower than %d ms, %s %s %%", formatDecimal(v1alpha1.Decimal(canary.SlowRate), 1), j.SlowerThanMilliseconds,
		active.Variation, formatDecimal(v1alpha1.Decimal(active.SlowRate), 1))
}

// DescribeCounts returns the requests and cells of both variations, and the gaps; empty without variations.
func DescribeCounts(j *Judge) []string {
	var parts []string
	for i := range j.Variations {
		v := &j.Variations[i]
		parts = append(parts, fmt.Sprintf("%s: %s in %s", v.Variation, countNoun(v.Samples, "request"), countNoun(v.Cells, "cell")))
	}
	if len(parts) == 0 {
		return nil
	}
	gaps := "no gap"
	if j.Gaps > 0 {
		gaps = countNoun(j.Gaps, "gap")
	}
	return append(parts, gaps)
}

func countNoun(n int64, noun string) string {
	text := GroupDigits(n) + " " + noun
	if n != 1 {
		text += "s"
	}
	return text
}

// GroupDigits returns a number with a comma before each group of three digits.
func GroupDigits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// highestE is the highest number that a status has of a bet.
const highestE = 999_999_999

// formatE returns an e-value with one decimal below 10, as a whole number below 10,000, and with an exponent
// from there on.
func formatE(d v1alpha1.Decimal) string {
	n, err := strconv.ParseFloat(string(d), 64)
	switch {
	case err != nil:
		return cmp.Or(string(d), Unknown)
	case n >= highestE:
		return "1e9 or more"
	case n >= 1e4:
		return strings.Replace(strconv.FormatFloat(n, 'e', 1, 64), "e+0", "e", 1)
	case n >= 10 || n == math.Trunc(n):
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// formatDecimal returns a number with so many decimals; a number that the status does not have is [Unknown].
func formatDecimal(d v1alpha1.Decimal, decimals int) string {
	n, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return cmp.Or(string(d), Unknown)
	}
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// maxTrail is how many e-values a trail keeps.
const maxTrail = 24

// Trail has the e-values of a run that a watch has seen, the newest last. The zero value has seen none.
type Trail struct {
	// Errors and Latency are the e-values by metric.
	Errors, Latency []float64

	run, evaluated int64
}

// See returns the trail with the newest e-values of a status. An evaluation that was seen adds nothing, and
// another run begins the trail anew.
func (t Trail) See(in *v1alpha1.RolloutStatus) Trail {
	if in == nil || in.Analysis == nil || in.Analysis.EvaluationTime == nil {
		return t
	}
	a := in.Analysis
	if a.Run != t.run {
		t = Trail{run: a.Run}
	}
	if at := a.EvaluationTime.Unix(); at > t.evaluated {
		t.evaluated = at
		t.Errors, t.Latency = follow(t.Errors, a.Errors), follow(t.Latency, a.Latency)
	}
	return t
}

func follow(values []float64, c *v1alpha1.HealthComparison) []float64 {
	if c == nil {
		return values
	}
	n, err := strconv.ParseFloat(string(c.EValue), 64)
	if err != nil {
		return values
	}
	next := append(slices.Clone(values), n)
	return next[max(0, len(next)-maxTrail):]
}

// bars are the heights of a sparkline.
var bars = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws e-values as bars. The scale is that of logarithms: the lowest bar is a payment of at most
// 1, and the highest bar is the one that fails.
func Sparkline(values []float64, failsAt v1alpha1.Decimal) string {
	limit, err := strconv.ParseFloat(string(failsAt), 64)
	if err != nil || !(limit > 1) { // as not a number is neither
		return ""
	}
	var b strings.Builder
	for _, v := range values {
		height := math.Log(max(v, 1)) / math.Log(limit) * float64(len(bars)-1)
		b.WriteRune(bars[min(int(max(height, 0)), len(bars)-1)])
	}
	return b.String()
}

// bet says how far a bet of the judge is. The judge fails no canary whose rate is at most the ignored one.
func bet(name string, c *v1alpha1.HealthComparison, rate string, ignored float64) Gate {
	gate := Gate{Name: name, State: GateOK, Value: strings.Join(DescribeComparison(c), ", ")}
	if rate != "" {
		gate.Value += ", " + rate
	}
	e, err := strconv.ParseFloat(string(c.EValue), 64)
	failsAt, err2 := strconv.ParseFloat(string(c.FailsAt), 64)
	switch {
	case err != nil || err2 != nil:
		gate.State = GateUnknown
	case e >= failsAt:
		gate.State, gate.Next = GateUnknown, fmt.Sprintf("the stage fails if the rate is above %g %% for certain, also without the proxy with the most failures", 100*ignored)
	}
	return gate
}

// compared returns the bets and the counts of the judge, if the status has them.
func (g *gates) compared() (all []Gate) {
	a := analysisOf(g.in)
	if a == nil {
		return nil
	}
	if a.Errors != nil {
		all = append(all, bet("Errors", a.Errors, "", judge.DefaultIgnoreBelow))
	}
	j := judgeOf(a)
	if a.Latency != nil {
		all = append(all, bet("Latency", a.Latency, DescribeSlow(j), judge.DefaultIgnoreSlowBelow))
	}
	if counts := DescribeCounts(j); a.Errors != nil && counts != nil {
		all = append(all, Gate{Name: "Samples", State: GateOK, Value: strings.Join(counts, ", ")})
	}
	return all
}
