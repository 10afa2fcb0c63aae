// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
)

// metrics of notifications; it is a deliver.Recorder.
type metrics struct {
	told     *prometheus.CounterVec
	retries  *prometheus.CounterVec
	doubts   *prometheus.CounterVec
	channels *prometheus.GaugeVec
}

// The states of a channel, as a label.
const (
	stateActive  = "active"
	stateInvalid = "invalid"
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		told: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_notifications_total",
			Help: "Notifications by type of channel and outcome: sent, failed (given up), dropped (no room, or the channel or the process ended), deduplicated.",
		}, []string{"channel_type", "outcome"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_notification_retries_total",
			Help: "Attempts to notify that failed and are repeated, by type of channel.",
		}, []string{"channel_type"}),
		doubts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_notifications_doubted_total",
			Help: "Notifications that were sent although Redis has the mark of an earlier one, by type of channel and reason: unproven (the mark in Redis is not one of Plumbline), urgent (a second alarm is better than no alarm).",
		}, []string{"channel_type", "reason"}),
		channels: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_notification_channels",
			Help: "Channels of all policies, Environments and guards by state: active, or invalid, which gets no notifications.",
		}, []string{"state"}),
	}
	// Where one process makes plans and carries them out, it tells people twice over,
	// and counts once.
	var errs [4]error
	m.told, errs[0] = telemetry.Shared(registry, m.told)
	m.channels, errs[1] = telemetry.Shared(registry, m.channels)
	m.retries, errs[2] = telemetry.Shared(registry, m.retries)
	m.doubts, errs[3] = telemetry.Shared(registry, m.doubts)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("registering the figures of notifications: %w", err)
	}
	m.begin()
	return m, nil
}

// begin makes the series exist, so that rate() sees the first of each.
func (m *metrics) begin() {
	for _, t := range []notify.ChannelType{notify.ChannelSlack, notify.ChannelEmail, notify.ChannelWebhook, notify.ChannelCloudEvents} {
		m.retries.WithLabelValues(label(t))
		for _, d := range deliver.Doubts {
			m.doubts.WithLabelValues(label(t), label(d))
		}
		for _, o := range []deliver.Outcome{deliver.Sent, deliver.Failed, deliver.Dropped, deliver.Deduplicated} {
			m.told.WithLabelValues(label(t), label(o))
		}
	}
	m.configured(0, 0)
}

// Record implements deliver.Recorder.
func (m *metrics) Record(t notify.ChannelType, o deliver.Outcome) {
	m.told.WithLabelValues(label(t), label(o)).Inc()
}

// Retry implements deliver.Recorder.
func (m *metrics) Retry(t notify.ChannelType) { m.retries.WithLabelValues(label(t)).Inc() }

// Doubt implements deliver.Recorder.
func (m *metrics) Doubt(t notify.ChannelType, d deliver.Doubt) {
	m.doubts.WithLabelValues(label(t), label(d)).Inc()
}

func (m *metrics) configured(active, invalid int) {
	m.channels.WithLabelValues(stateActive).Set(float64(active))
	m.channels.WithLabelValues(stateInvalid).Set(float64(invalid))
}

func label[T ~string](word T) string { return strings.ToLower(string(word)) }
