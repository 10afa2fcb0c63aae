// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/remediate/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify/deliver"
)

// metrics of notifications; it is a deliver.Recorder.
type metrics struct {
	told     *prometheus.CounterVec
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
		channels: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_notification_channels",
			Help: "Channels of all policies by state: active, or invalid, which is told nothing.",
		}, []string{"state"}),
	}
	for _, c := range []prometheus.Collector{m.told, m.channels} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the figures of notifications: %w", err)
		}
	}
	m.begin()
	return m, nil
}

// begin makes the series exist, so that rate() sees the first of each.
func (m *metrics) begin() {
	for _, t := range []notify.ChannelType{notify.ChannelSlack, notify.ChannelEmail, notify.ChannelWebhook, notify.ChannelCloudEvents} {
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

func (m *metrics) configured(active, invalid int) {
	m.channels.WithLabelValues(stateActive).Set(float64(active))
	m.channels.WithLabelValues(stateInvalid).Set(float64(invalid))
}

func label[T ~string](word T) string { return strings.ToLower(string(word)) }
