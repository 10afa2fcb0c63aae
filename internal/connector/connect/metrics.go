// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// The gauges are computed when Prometheus asks, from the routers that the leader has.
var (
	routerLabels = []string{"router", "type"}

	splitsDesc = prometheus.NewDesc("plumbline_router_splits",
		"Splits of releases at a router, by the knowledge of the router: Proven, Accepted, Unknown, NoProxies, Contradicted; on the leader.", append(routerLabels[:2:2], "knowledge"), nil)
	refusedDesc = prometheus.NewDesc("plumbline_router_refused_splits",
		"Splits of releases that a router refuses; on the leader.", routerLabels, nil)
	heldDesc = prometheus.NewDesc("plumbline_router_held_splits",
		"Splits of releases that a router does not restore for now, because another writer keeps changing the weights; on the leader.", routerLabels, nil)
	starvedDesc = prometheus.NewDesc("plumbline_router_starved_variations",
		"Variations that cannot have their share at a router; on the leader.", routerLabels, nil)
	pendingDesc = prometheus.NewDesc("plumbline_router_unconfirmed_seconds",
		"Time since the oldest split of a router that is neither effective there nor settling; 0 without one; on the leader.", routerLabels, nil)
)

// knowledge are the values of the label.
var knowledge = []traffic.Knowledge{traffic.Proven, traffic.Accepted, traffic.Unknown, traffic.NoProxies, traffic.Contradicted}

// The results of an edit by another writer.
const (
	editRestored = "restored"
	editHeld     = "held"
)

// Metrics tell of the routers of TrafficRouters. They outlive a time of leading; nil Metrics count no router. The labels are
// the name and the type of a TrafficRouter, and values of this package, so TrafficRouters bound the number of series.
type Metrics struct {
	confirmed                 *prometheus.HistogramVec
	refusals, edits, requests *prometheus.CounterVec

	mu sync.Mutex
	// now is nil while the process does not lead.
	now      func() time.Time
	measured map[route]*measured
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		confirmed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_router_confirmation_duration_seconds",
			Help:    "From the time at which a router got a split first until the split was effective there, the settle time included.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
		}, routerLabels),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_router_refusals_total",
			Help: "Splits that a router refused, each once for each reason.",
		}, append(routerLabels[:2:2], "reason")),
		edits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_router_edits_total",
			Help: "Changes of weights by other writers, by result: restored, held (the router leaves the weights for now).",
		}, append(routerLabels[:2:2], "result")),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_router_requests_total",
			Help: "Requests to the program of a router, by result: succeeded, refused (the program answered so), failed (no answer that can be used).",
		}, append(routerLabels[:2:2], "result")),
	}
	for _, c := range []prometheus.Collector{m.confirmed, m.refusals, m.edits, m.requests, m} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of routers: %w", err)
		}
	}
	return m, nil
}

// Lead has the gauges tell of routers until the returned function is called.
func (m *Metrics) Lead(now func() time.Time) (resign func()) {
	if m == nil {
		return func() {}
	}
	set := func(now func() time.Time) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now, m.measured = now, map[route]*measured{}
	}
	set(now)
	return func() { set(nil) }
}

// addRouter has the gauges tell of the router of a release, and of no former one.
func (m *Metrics) addRouter(at route, router *measured) {
	m.changeLeading(func() { m.measured[at] = router })
	if m == nil {
		return
	}
	for _, result := range []string{editRestored, editHeld} { // the first count is an increase
		m.edits.WithLabelValues(router.name, router.kind, result)
	}
}

// forgetRouter drops the router of a release that is gone.
func (m *Metrics) forgetRouter(at route) { m.changeLeading(func() { delete(m.measured, at) }) }

// changeLeading does a change unless the lead is lost: a release can be looked at meanwhile.
func (m *Metrics) changeLeading(do func()) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		do()
	}
}

// Describe implements prometheus.Collector.
func (*Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{splitsDesc, refusedDesc, heldDesc, starvedDesc, pendingDesc} {
		out <- desc
	}
}

// sums are the gauges of one TrafficRouter.
type sums struct {
	splits                 map[traffic.Knowledge]int
	refused, held, starved int
	pending                time.Duration
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for at, s := range m.sumByRouter() {
		gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{at.name, at.kind}, labels...)...)
		}
		for _, k := range knowledge {
			gauge(splitsDesc, float64(s.splits[k]), string(k))
		}
		gauge(refusedDesc, float64(s.refused))
		gauge(heldDesc, float64(s.held))
		gauge(starvedDesc, float64(s.starved))
		gauge(pendingDesc, s.pending.Seconds())
	}
}

// identity of a TrafficRouter in labels.
type identity struct{ name, kind string }

func (m *Metrics) sumByRouter() map[identity]*sums {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[identity]*sums{}
	for _, router := range m.measured {
		s := all[router.identity]
		if s == nil {
			s = &sums{splits: map[traffic.Knowledge]int{}}
			all[router.identity] = s
		}
		router.addTo(s, m.now())
	}
	return all
}
