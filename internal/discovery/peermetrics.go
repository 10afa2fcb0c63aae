// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// peerMetrics count what replicas know of each other, and who has not acknowledged what.
type peerMetrics struct {
	refused        *prometheus.CounterVec
	unacknowledged prometheus.Gauge

	mu       sync.Mutex
	releases map[types.NamespacedName]int // unacknowledged proxies of each
}

func newPeerMetrics(registry prometheus.Registerer, others *following) (*peerMetrics, error) {
	m := &peerMetrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_xds_peers_refused_total",
			Help: "Tokens of callers that asked for the acknowledgments here and may not read them, by reason.",
		}, []string{"reason"}),
		unacknowledged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_xds_unacknowledged_proxies",
			Help: "Proxies that have not acknowledged the effective split, over all releases, when each was last looked at; by the replica that leads.",
		}),
		releases: map[types.NamespacedName]int{},
	}
	for _, c := range []prometheus.Collector{m.refused, m.unacknowledged, peerStates{others}} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of replicas: %w", err)
		}
	}
	return m, nil
}

func (m *peerMetrics) refuse(why identity.Reason) { m.refused.WithLabelValues(string(why)).Inc() }

func (m *peerMetrics) unacknowledgedProxies(release types.NamespacedName, seen traffic.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releases[release] = seen.Wanted - seen.Acknowledged
	m.sum()
}

// forget a release that is gone.
func (m *peerMetrics) forget(release types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.releases, release)
	m.sum()
}

func (m *peerMetrics) sum() {
	all := 0
	for _, n := range m.releases {
		all += n
	}
	m.unacknowledged.Set(float64(all))
}

// peerStates counts the other replicas when somebody asks. It implements
// prometheus.Collector.
type peerStates struct{ others *following }

var peersDesc = prometheus.NewDesc("plumbline_xds_peers",
	"Other replicas by their state: heard, or unheard, with proxies that count as unacknowledged. Both are 0 unless this replica leads.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (peerStates) Describe(ch chan<- *prometheus.Desc) { ch <- peersDesc }

// Collect implements prometheus.Collector.
func (p peerStates) Collect(ch chan<- prometheus.Metric) {
	heard, unheard := 0, 0
	mirrors, _ := p.others.all()
	for _, mirror := range mirrors {
		if mirror.Heard(p.others.clock.Now()) {
			heard++
		} else {
			unheard++
		}
	}
	ch <- prometheus.MustNewConstMetric(peersDesc, prometheus.GaugeValue, float64(heard), "heard")
	ch <- prometheus.MustNewConstMetric(peersDesc, prometheus.GaugeValue, float64(unheard), "unheard")
}
