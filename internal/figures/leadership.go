// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Leadership knows whether this replica leads. It is a manager.Runnable, which a
// manager starts when it has the lease, and a prometheus.Collector.
type Leadership struct {
	// Component is whose replica it is, a part of the metric's name; empty: the
	// assessor's.
	Component string

	leading atomic.Bool
}

func (l *Leadership) desc() *prometheus.Desc {
	return prometheus.NewDesc("plumbline_"+cmp.Or(l.Component, "assessor")+"_leader", "1 when this replica leads, 0 when it waits.", nil, nil)
}

// Start leads until ctx ends.
func (l *Leadership) Start(ctx context.Context) error {
	l.leading.Store(true)
	<-ctx.Done()
	l.leading.Store(false)
	return nil
}

// Leading says whether this replica leads.
func (l *Leadership) Leading() bool { return l.leading.Load() }

// Describe implements prometheus.Collector.
func (l *Leadership) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc() }

// Collect implements prometheus.Collector.
func (l *Leadership) Collect(ch chan<- prometheus.Metric) {
	value := 0.0
	if l.Leading() {
		value = 1
	}
	ch <- prometheus.MustNewConstMetric(l.desc(), prometheus.GaugeValue, value)
}
