// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

var (
	contactDesc = prometheus.NewDesc("plumbline_watch_contact_age_seconds",
		"Time since the API server last sent anything for a guarded kind; it sends a sign of life about once a minute.", []string{"kind"}, nil)
	stalenessDesc = prometheus.NewDesc("plumbline_assessor_staleness_seconds",
		"How old the oldest status of a guarded object may be: the longest silence of a watch, or the oldest change that is not in a Baseline's status yet.", nil, nil)
)

// Objects tells what the watches have; *kube.Tracker does.
type Objects interface {
	Kinds() []schema.GroupVersionKind
	Health(schema.GroupVersionKind) kube.Health
	Each(func(kube.Key))
	View(kube.Key) kube.View
}

// Freshness tells how old what is said may be. Drift is found by watches, so a
// quiet object is not a stale one: its state is as fresh as the watch of its kind.
type Freshness struct {
	Objects Objects
	// Active says whether this replica watches.
	Active func() bool
	Clock  clock.PassiveClock
}

// Describe implements prometheus.Collector.
func (f *Freshness) Describe(ch chan<- *prometheus.Desc) {
	ch <- contactDesc
	ch <- stalenessDesc
}

// Collect implements prometheus.Collector.
func (f *Freshness) Collect(ch chan<- prometheus.Metric) {
	if !f.Active() {
		return
	}
	now := f.Clock.Now()
	oldest := f.oldestUnsettled(now)
	for _, gvk := range f.Objects.Kinds() {
		health := f.Objects.Health(gvk)
		last := health.Contact
		if last.IsZero() {
			last = health.FailingSince // never answered
		}
		if last.IsZero() {
			continue // just asked
		}
		silent := max(0, now.Sub(last))
		oldest = max(oldest, silent)
		ch <- prometheus.MustNewConstMetric(contactDesc, prometheus.GaugeValue, silent.Seconds(), gvk.GroupKind().String())
	}
	ch <- prometheus.MustNewConstMetric(stalenessDesc, prometheus.GaugeValue, oldest.Seconds())
}

func (f *Freshness) oldestUnsettled(now time.Time) time.Duration {
	var oldest time.Duration
	f.Objects.Each(func(key kube.Key) {
		if pending := f.Objects.View(key).Pending; len(pending) > 0 {
			oldest = max(oldest, now.Sub(pending[0].SeenAt))
		}
	})
	return oldest
}
