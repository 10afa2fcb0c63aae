// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/control"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/quantile"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

// Result of one server.
type Result struct {
	Server string
	Shape  world.Shape
	// Empty is the server's process before any proxy came; Before and Full with all of
	// them, before and after a garbage collection; End after everything. Client is the
	// process of the proxies.
	Empty, Before, Full, End, Client control.Usage
	Phases                           []Phase
}

// Phase is what was done, and what it cost.
type Phase struct {
	Name   string
	Rounds int `json:",omitempty"`
	Took   time.Duration
	// Pushes are acknowledgments, or proxies that have everything; Missing those that did
	// not come in time.
	Pushes, Missing int
	// Latency from a step to its acknowledgment.
	Latency              quantile.Summary
	ServerCPU, ClientCPU time.Duration
	// Sent and Received by the server, in bytes.
	Sent, Received int64
	// Troubles that the server told of.
	Troubles map[string]int64 `json:",omitempty"`
	Note     string           `json:",omitempty"`
}

// perProxy is what a proxy adds to something that an empty server has of.
func (r *Result) perProxy(with, without int64) int64 {
	return (with - without) / int64(r.Shape.Proxies)
}

// table is for people.
func (r *Result) table() string {
	var b strings.Builder
	s := r.Shape
	fmt.Fprintf(&b, "\n%s: %d proxies, %d services, %d dependencies each, %d groups\n", r.Server, s.Proxies, s.Services, s.Dependencies, s.Groups())
	if r.Full.Resident > 0 {
		fmt.Fprintf(&b, "memory: empty %d MiB; all connected %d MiB, after collection %d MiB (peak %d), live heap %d MiB\n",
			r.Empty.Resident>>20, r.Before.Resident>>20, r.Full.Resident>>20, r.End.Peak>>20, r.Full.Heap>>20)
		fmt.Fprintf(&b, "per proxy: RSS %d KiB after collection (%d before), live heap %d KiB, stacks of %.1f goroutines %d KiB; at the end RSS %d KiB\n",
			r.perProxy(r.Full.Resident, r.Empty.Resident)>>10, r.perProxy(r.Before.Resident, r.Empty.Resident)>>10,
			r.perProxy(r.Full.Heap, r.Empty.Heap)>>10, float64(r.Full.Goroutines-r.Empty.Goroutines)/float64(s.Proxies),
			r.perProxy(r.Full.Stacks, r.Empty.Stacks)>>10,
			r.perProxy(r.End.Resident, r.Empty.Resident)>>10)
		fmt.Fprintf(&b, "the proxies: RSS %d KiB each\n", r.perProxy(r.Client.Resident, 0)>>10)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "phase\tpushes\tmissing\tp50\tp99\tmax\ttook\tserver CPU\tper push\tclient per push\tbytes per push\t ") // to memory
	for _, p := range r.Phases {
		n := max(1, p.Pushes)
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t %s\n", p.Name, p.Pushes, p.Missing,
			short(p.Latency.P50), short(p.Latency.P99), short(p.Latency.Max), short(p.Took),
			short(p.ServerCPU), short(p.ServerCPU/time.Duration(n)), short(p.ClientCPU/time.Duration(n)), p.Sent/int64(n), p.remarks())
	}
	_ = w.Flush() // to memory
	return b.String()
}

func (p *Phase) remarks() string {
	var all []string
	for name, n := range p.Troubles {
		all = append(all, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(all)
	if p.Note != "" {
		all = append(all, p.Note)
	}
	return strings.Join(all, ", ")
}

// short is a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
