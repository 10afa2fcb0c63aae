// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	snapshotAgeDesc = prometheus.NewDesc("plumbline_guard_snapshot_age_seconds",
		"Seconds since the API server last answered for the guards that reviews are judged by; -1 before the first answer.", nil, nil)
	guardsDesc = prometheus.NewDesc("plumbline_guards",
		"Guards by state: active, or inert because they do not compile.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (g *Guards) Describe(ch chan<- *prometheus.Desc) {
	ch <- snapshotAgeDesc
	ch <- guardsDesc
}

// Collect implements prometheus.Collector.
func (g *Guards) Collect(ch chan<- prometheus.Metric) {
	age := -1.0
	if at := g.confirmed.Load(); at != 0 {
		age = time.Since(time.Unix(0, at)).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(snapshotAgeDesc, prometheus.GaugeValue, age)
	ch <- prometheus.MustNewConstMetric(guardsDesc, prometheus.GaugeValue, float64(g.active.Load()), "active")
	ch <- prometheus.MustNewConstMetric(guardsDesc, prometheus.GaugeValue, float64(g.inert.Load()), "inert")
}

func schemaGroupKind(kind canon.GVK) schema.GroupKind {
	return schema.GroupKind{Group: kind.Group, Kind: kind.Kind}
}

func isBuiltInParent(kind canon.GVK) bool {
	for _, known := range builtInParents {
		if known == kind {
			return true
		}
	}
	return false
}
