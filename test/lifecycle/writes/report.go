// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// maxErrors bounds how many errors are kept; all are counted.
const maxErrors = 10

// Report is what a stream measured.
type Report struct {
	// Calls that were answered or given up, by verb.
	Calls map[Verb]int
	// Failed of them: no answer, another status than 2xx, or an answer without
	// what was written. Errors are the first ones.
	Failed int
	Errors []string
	// Unstamped calls came back with no stamp, or another than the object's;
	// Marks name the first and the last of them.
	Unstamped int
	Marks     []string
	// Latency counts from when calls were due. Late is how late they were sent,
	// and part of it: where it comes near, the stream was too much for the machine.
	Latency, Late replay.Histogram
	Elapsed       time.Duration
	// Living objects at the end, as they must be stored, in order of their names.
	Living []Stored
}

func (r *Report) count(c call, late, took time.Duration, unstamped bool, err error) {
	r.Calls[c.verb]++
	r.Late.Add(late)
	r.Latency.Add(took)
	if err != nil {
		r.Failed++
		if len(r.Errors) < maxErrors {
			r.Errors = append(r.Errors, fmt.Sprintf("%s %s: %v", c.method, c.path, err))
		}
	}
	if unstamped {
		r.Unstamped++
		mark := fmt.Sprintf("%s %s, answered at %s", c.method, c.path, time.Now().Format(time.TimeOnly+".000"))
		if len(r.Marks) > 1 {
			r.Marks = r.Marks[:1]
		}
		r.Marks = append(r.Marks, mark)
	}
}

// Total is the number of calls.
func (r *Report) Total() int {
	n := 0
	for _, count := range r.Calls {
		n += count
	}
	return n
}

// Reviews is how many admission reviews the calls caused at least.
func (r *Report) Reviews() int {
	n := 0
	for verb, count := range r.Calls {
		n += count * verb.Reviews()
	}
	return n
}

// String is one line for people.
func (r *Report) String() string {
	var b strings.Builder
	quantile := func(h *replay.Histogram, share float64) time.Duration {
		return h.Quantile(share).Round(100 * time.Microsecond)
	}
	fmt.Fprintf(&b, "%d calls in %s (%.0f/s), %d failed, %d unstamped, p50 %s, p99 %s, max %s; sent late p50 %s, p99 %s;",
		r.Total(), r.Elapsed.Round(100*time.Millisecond), float64(r.Total())/max(r.Elapsed.Seconds(), 1e-9), r.Failed, r.Unstamped,
		quantile(&r.Latency, .5), quantile(&r.Latency, .99), r.Latency.Max().Round(100*time.Microsecond),
		quantile(&r.Late, .5), quantile(&r.Late, .99))
	for _, verb := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(&b, " %s %d", verb, r.Calls[verb])
	}
	return b.String()
}
