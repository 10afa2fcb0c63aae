// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	expiryDesc = prometheus.NewDesc("plumbline_certificate_expiry_timestamp_seconds",
		"When the serving certificate expires, in seconds since 1970; 0 before the first certificate.", nil, nil)
	leaderDesc = prometheus.NewDesc("plumbline_certificate_leader",
		"1 when this replica holds the lease to write certificates.", nil, nil)
	aheadDesc = prometheus.NewDesc("plumbline_certificate_clock_ahead_seconds",
		"How far the API server's clock is ahead of this replica's; certificates go by the API server's when it is a minute or more.", nil, nil)
	unusableDesc = prometheus.NewDesc("plumbline_certificate_unusable",
		"1 when the Secret holds a certificate that cannot be served; the one before stays in service.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(ch chan<- *prometheus.Desc) {
	ch <- expiryDesc
	ch <- leaderDesc
	ch <- aheadDesc
	ch <- unusableDesc
}

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(ch chan<- prometheus.Metric) {
	var expiry, leader, unusable float64
	if t := k.NotAfter(); !t.IsZero() {
		expiry = float64(t.Unix())
	}
	if k.Leading() {
		leader = 1
	}
	if err := k.error(&k.loadErr); err != nil && !errors.Is(err, ErrNoMaterial) {
		unusable = 1
	}
	ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, expiry)
	ch <- prometheus.MustNewConstMetric(leaderDesc, prometheus.GaugeValue, leader)
	ch <- prometheus.MustNewConstMetric(aheadDesc, prometheus.GaugeValue, k.clock.Ahead().Seconds())
	ch <- prometheus.MustNewConstMetric(unusableDesc, prometheus.GaugeValue, unusable)
}
