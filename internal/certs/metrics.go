// SPDX-License-Identifier: Apache-2.0

package certs

import "github.com/prometheus/client_golang/prometheus"

var (
	expiryDesc = prometheus.NewDesc("plumbline_certificate_expiry_timestamp_seconds",
		"When the serving certificate expires, in seconds since 1970; 0 while there is none.", nil, nil)
	leaderDesc = prometheus.NewDesc("plumbline_certificate_leader",
		"1 when this replica holds the lease to write certificates.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *Keeper) Describe(ch chan<- *prometheus.Desc) {
	ch <- expiryDesc
	ch <- leaderDesc
}

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(ch chan<- prometheus.Metric) {
	var expiry, leader float64
	if t := k.NotAfter(); !t.IsZero() {
		expiry = float64(t.Unix())
	}
	if k.Leading() {
		leader = 1
	}
	ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, expiry)
	ch <- prometheus.MustNewConstMetric(leaderDesc, prometheus.GaugeValue, leader)
}
