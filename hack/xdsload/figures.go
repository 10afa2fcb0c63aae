// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/quantile"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

// figures are those that the whole path is measured for.
type figures struct {
	// cores of the replica while pods are replaced, and the decisions of that time.
	cores       float64
	decisions   quantile.Summary
	subscribers int
	// memory of a connected proxy after collections, in bytes.
	memory float64
}

// What is wanted.
const (
	wantedCores  = 0.3
	wantedTime   = 100 * time.Millisecond
	wantedMemory = 128 << 10
)

// print a table of what is wanted and what was measured.
func (f *figures) print(w io.Writer, s world.Shape, churn int) {
	fmt.Fprintf(w, "\n%d Services with %d endpoints, %d scopes, %d proxies with %d Services each; %d pods and as many proxies replaced a second\n\n",
		s.Services, s.Endpoints, s.Groups(), s.Proxies, s.Dependencies, churn)
	table := rows{w, []string{"Figure", "Wanted", "Measured", "Reached"}}
	table.begin()
	reached := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	table.row("processor of the replica", fmt.Sprintf("%.1f cores", wantedCores), fmt.Sprintf("%.2f cores", f.cores), reached(f.cores <= wantedCores))
	table.row(fmt.Sprintf("a decision to the last of %d confirmations, p99 (p50)", f.subscribers), short(wantedTime),
		fmt.Sprintf("%s (%s)", short(f.decisions.P99), short(f.decisions.P50)), reached(f.decisions.P99 <= wantedTime))
	table.row("memory of a connected proxy, after collections", kibibytes(wantedMemory), kibibytes(f.memory), reached(f.memory <= wantedMemory))
}

// rows of a table in Markdown.
type rows struct {
	to    io.Writer
	names []string
}

func (r rows) begin() {
	r.row(r.names...)
	r.row(strings.Split(strings.Repeat("---,", len(r.names)-1)+"---", ",")...)
}

func (r rows) row(cells ...string) { fmt.Fprintln(r.to, "|", strings.Join(cells, " | "), "|") }

func mebibytes(n float64) string { return fmt.Sprintf("%.0f MiB", n/(1<<20)) }

func kibibytes(n float64) string { return fmt.Sprintf("%.1f KiB", n/(1<<10)) }
