// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

const (
	// rateWindow is over how long generations are counted.
	rateWindow = 5 * time.Minute
	// loopRate is when an object is named in the log. An autoscaler moves every
	// 15 s at most, a rollout writes the spec once.
	loopRate = 20
	// maxRated bounds the memory; beyond it new objects are not counted until
	// others have been quiet for a window.
	maxRated = 20_000
)

var rateDesc = prometheus.NewDesc("plumbline_guarded_generations_per_minute",
	"How fast the generation of the busiest guarded object grows, over five minutes. A webhook and a controller that undo each other write without end.", nil, nil)

// WriteRate counts the generations of guarded objects, to find loops between
// admission and controllers: they change the spec again and again.
type WriteRate struct {
	Clock clock.PassiveClock
	Log   logr.Logger

	mu      sync.Mutex
	objects map[kube.Key]*rated
}

// rated holds two halves of the window: what the generation was at the begin of
// each.
type rated struct {
	uid              string
	previous, begun  point
	generation       int64
	seen, lastLogged time.Time
}

type point struct {
	at         time.Time
	generation int64
}

// Note takes the present version of an object; nil is one that is gone.
func (w *WriteRate) Note(key kube.Key, object *kube.Object) {
	now := w.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if object == nil {
		delete(w.objects, key)
		return
	}
	if w.objects == nil {
		w.objects = map[kube.Key]*rated{}
	}
	r := w.objects[key]
	if r == nil || r.uid != string(object.UID) {
		if r == nil && len(w.objects) >= maxRated && w.prune(now) >= maxRated {
			return
		}
		start := point{now, object.Generation}
		w.objects[key] = &rated{uid: string(object.UID), previous: start, begun: start, generation: object.Generation, seen: now}
		return
	}
	r.note(now, object.Generation)
	if rate := r.perMinute(now); rate >= loopRate && now.Sub(r.lastLogged) >= rateWindow {
		r.lastLogged = now
		w.Log.Info("object.written.without.end", "kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "generations_per_minute", rate)
	}
}

func (r *rated) note(now time.Time, generation int64) {
	if now.Sub(r.begun.at) >= rateWindow {
		r.previous, r.begun = r.begun, point{now, r.generation}
		if now.Sub(r.seen) >= rateWindow { // quiet in between
			r.previous = r.begun
		}
	}
	r.generation, r.seen = generation, now
}

// perMinute divides by a whole window at least, so that a burst is not a rate.
func (r *rated) perMinute(now time.Time) float64 {
	if now.Sub(r.seen) >= rateWindow {
		return 0
	}
	span := max(now.Sub(r.previous.at), rateWindow)
	return float64(r.generation-r.previous.generation) / span.Minutes()
}

// prune forgets objects that were quiet for a window; it returns how many are left.
func (w *WriteRate) prune(now time.Time) int {
	for key, r := range w.objects {
		if now.Sub(r.seen) >= rateWindow {
			delete(w.objects, key)
		}
	}
	return len(w.objects)
}

// Describe implements prometheus.Collector.
func (w *WriteRate) Describe(ch chan<- *prometheus.Desc) { ch <- rateDesc }

// Collect implements prometheus.Collector.
func (w *WriteRate) Collect(ch chan<- prometheus.Metric) {
	now := w.Clock.Now()
	highest := 0.0
	w.mu.Lock()
	w.prune(now)
	for _, r := range w.objects {
		highest = max(highest, r.perMinute(now))
	}
	w.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(rateDesc, prometheus.GaugeValue, highest)
}
