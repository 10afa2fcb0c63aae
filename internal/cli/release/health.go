// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// drawHealth returns the bets of the judge with the bars that a watch has seen, and the counts.
func drawHealth(j *progress.Judge, trail *progress.Trail) []string {
	var lines []string
	if j.Errors != nil {
		lines = append(lines, drawComparison("errors", j.Errors, trail.Errors)...)
	}
	if j.Latency != nil {
		lines = append(lines, drawComparison("latency", j.Latency, trail.Latency, progress.DescribeSlow(j))...)
	}
	if j.Errors == nil {
		return lines
	}
	return append(lines, drawParts("counts", progress.DescribeCounts(j), "   ")...)
}

func drawComparison(label string, c *v1alpha1.HealthComparison, seen []float64, more ...string) []string {
	parts := progress.DescribeComparison(c)
	if bars := progress.Sparkline(seen, c.FailsAt); bars != "" {
		parts = append([]string{parts[0], bars}, parts[1:]...)
	}
	for _, text := range more {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return drawParts(label, parts, "   ")
}
