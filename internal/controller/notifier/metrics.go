// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify/deliver"
)

// metrics of notifications; it is a deliver.Recorder.
type metrics struct {
	told     *prometheus.CounterVec
	retries  *prometheus.CounterVec
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
			Help: "Attempts to tell somebody that failed and are made again, by type of channel.",
		}, []string{"channel_type"}),
		channels: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_notification_channels",
			Help: "Channels of all policies by state: active, or invalid, which is told nothing.",
		}, []string{"state"}),
	}
	// Where one process makes plans and carries them out, it tells people twice over,
	// and counts once.
	var errs [3]error
	m.told, errs[0] = telemetry.Shared(registry, m.told)
	m.channels, errs[1] = telemetry.Shared(registry, m.channels)
	m.retries, errs[2] = telemetry.Shared(registry, m.retries)
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

func (m *metrics) configured(active, invalid int) {
	m.channels.WithLabelValues(stateActive).Set(float64(active))
	m.channels.WithLabelValues(stateInvalid).Set(float64(invalid))
}

func label[T ~string](word T) string { return strings.ToLower(string(word)) }
