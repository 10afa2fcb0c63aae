// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"strconv"
	"strings"
)

// SumSamples sums the samples of a metric in Prometheus' text format whose labels
// contain all of the given texts, e.g. `verdict="warn"`; 0 when there is none.
func SumSamples(page, name string, labels ...string) (float64, error) {
	sum := 0.0
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') || !containsAll(rest, labels) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("reading the sample %q: %w", line, err)
		}
		sum += value
	}
	return sum, nil
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
