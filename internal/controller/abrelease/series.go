// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// The kinds of weights: the weight that the run wants, the one that all proxies have acknowledged, and the measured one.
const (
	wantedWeight       = "wanted"
	acknowledgedWeight = "acknowledged"
	seenWeight         = "seen"
)

// The label is release_namespace, as Prometheus gives the pods that it scrapes the label namespace.
var weightDesc = prometheus.NewDesc("plumbline_release_weight_ratio",
	"Part of the requests of a Service at a variation, from 0 to 1, while a run is under way, by kind: wanted, acknowledged (by all proxies), seen; on the leader.",
	[]string{"release_namespace", "release", "variation", "kind"}, nil)

// weight of one variation. Each part is from 0 to 1; a part that is not known is missing.
type weight struct {
	variation string
	parts     map[string]float64
}

// series are the gauges with the names of releases.
type series struct{ metrics *RolloutMetrics }

// Series returns the gauges that name releases: up to nine series for each run that is on. They are
// registered where they are wanted alone, as their number grows with the cluster.
func (m *RolloutMetrics) Series() prometheus.Collector { return series{m} }

// Describe implements prometheus.Collector.
func (series) Describe(out chan<- *prometheus.Desc) { out <- weightDesc }

// Collect implements prometheus.Collector.
func (s series) Collect(out chan<- prometheus.Metric) {
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	if s.metrics.clock == nil {
		return
	}
	for name := range s.metrics.releases {
		for _, w := range s.metrics.releases[name].weights {
			for kind, part := range w.parts {
				out <- prometheus.MustNewConstMetric(weightDesc, prometheus.GaugeValue, part, name.Namespace, name.Name, w.variation, kind)
			}
		}
	}
}

// weightsOf reads the weights of the variations that are in force.
func weightsOf(status *v1alpha1.ABReleaseStatus) (all []weight) {
	if status.Effective == nil {
		return nil
	}
	isAcknowledged := status.Acknowledged != nil && status.Acknowledged.Sequence == status.Effective.Sequence
	for i := range status.Effective.Variations {
		v := &status.Effective.Variations[i]
		w := weight{string(v.Name), map[string]float64{}}
		for _, wanted := range status.Wanted {
			if wanted.Variation == v.Name && wanted.Weight != nil {
				w.parts[wantedWeight] = float64(*wanted.Weight) / float64(traffic.Total)
			}
		}
		if isAcknowledged && v.Weight != nil {
			w.parts[acknowledgedWeight] = float64(*v.Weight) / float64(traffic.Total)
		}
		if part, is := seenPart(status.Observed, v.Name); is {
			w.parts[seenWeight] = part
		}
		all = append(all, w)
	}
	return all
}

// seenPart returns the measured part of a variation; false without requests, or without a count of one of
// the variations.
func seenPart(observed []v1alpha1.ObservedVariation, name v1alpha1.VariationName) (part float64, is bool) {
	var of, sum int64
	for i := range observed {
		if observed[i].Requests == nil {
			return 0, false
		}
		if sum += *observed[i].Requests; observed[i].Variation == name {
			of = *observed[i].Requests
		}
	}
	if sum <= 0 {
		return 0, false
	}
	return float64(of) / float64(sum), true
}
