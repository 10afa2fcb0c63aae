// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness"
)

func TestSumSamples(t *testing.T) {
	const page = "# HELP calls_total Calls.\n# TYPE calls_total counter\n" +
		"calls_total{code=\"200\",name=\"ours\"} 3\ncalls_total{code=\"503\",name=\"ours\"} 1e+01\ncalls_total{code=\"200\",name=\"theirs\"} 100\n" +
		"calls_total_more 7\ncalls 5\n"
	tests := map[string]struct {
		name   string
		labels []string
		want   float64
	}{
		"all series of a name":          {"calls_total", nil, 113},
		"those with a label":            {"calls_total", []string{`name="ours"`}, 13},
		"those with two":                {"calls_total", []string{`name="ours"`, `code="200"`}, 3},
		"a name that others begin with": {"calls", nil, 5},
		"none":                          {"nothing", nil, 0},
		"none with the label":           {"calls_total", []string{`name="nobody"`}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := harness.SumSamples(page, tc.name, tc.labels...)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if _, err := harness.SumSamples("calls many\n", "calls"); err == nil {
		t.Error("a value that is no number is taken")
	}
}
