// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

func mean(took []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return sum / time.Duration(len(took))
}

// added is the addition of a variant to the latency of the reference, and how far its median
// differs from one round to another.
type added struct {
	p50, p99  time.Duration
	low, high time.Duration // quartiles of the difference of the medians of a round
}

func addedTo(reference, m *measured) added {
	var rounds []time.Duration
	for n, median := range m.blocks {
		rounds = append(rounds, median-reference.blocks[n])
	}
	return added{
		p50: quantile.Of(m.took, 50) - quantile.Of(reference.took, 50), p99: quantile.Of(m.took, 99) - quantile.Of(reference.took, 99),
		low: quantile.Of(rounds, 25), high: quantile.Of(rounds, 75),
	}
}

// ms writes a duration in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

// ratio writes a quotient, and a dash where the second is too small to divide by.
func ratio(a, b time.Duration) string {
	if b < 300*time.Microsecond {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// table is one in Markdown.
type table struct{ rows []string }

func (t *table) row(columns ...string) {
	t.rows = append(t.rows, "| "+strings.Join(columns, " | ")+" |")
}

func (t *table) head(columns ...string) {
	t.row(columns...)
	t.rows = append(t.rows, "|"+strings.Repeat("---|", len(columns)))
}

func (t *table) String() string { return strings.Join(t.rows, "\n") }
