// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

var (
	retainedDesc = prometheus.NewDesc("plumbline_assessor_object_cache_bytes",
		"Memory that the kept versions of objects take, compressed.", nil, nil)
	retainedLimitDesc = prometheus.NewDesc("plumbline_assessor_object_cache_limit_bytes",
		"Memory that the kept versions of objects may take (--object-cache-bytes); 0 is no bound.", nil, nil)
	partialDesc = prometheus.NewDesc("plumbline_assessor_object_cache_partial_objects",
		"Objects kept without their content, by reason: unguarded (no guard covers their kind in their namespace), limit (their namespace held the most when the limit was passed). The assessor reads them live.",
		[]string{"reason"}, nil)
)

// Retained tells how much is kept of the objects that are watched.
type Retained struct {
	Objects interface{ Retained() kube.Retained }
	// Active says whether this replica watches.
	Active func() bool
}

// Describe implements prometheus.Collector.
func (r *Retained) Describe(ch chan<- *prometheus.Desc) {
	ch <- retainedDesc
	ch <- retainedLimitDesc
	ch <- partialDesc
}

// Collect implements prometheus.Collector.
func (r *Retained) Collect(ch chan<- prometheus.Metric) {
	if !r.Active() {
		return
	}
	kept := r.Objects.Retained()
	ch <- prometheus.MustNewConstMetric(retainedDesc, prometheus.GaugeValue, float64(kept.Bytes))
	ch <- prometheus.MustNewConstMetric(retainedLimitDesc, prometheus.GaugeValue, float64(kept.Budget))
	ch <- prometheus.MustNewConstMetric(partialDesc, prometheus.GaugeValue, float64(kept.Unguarded), "unguarded")
	ch <- prometheus.MustNewConstMetric(partialDesc, prometheus.GaugeValue, float64(kept.Dropped), "limit")
}
