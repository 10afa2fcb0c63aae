// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// Metrics counts reviews. It is a prometheus.Collector, shared by all handlers.
// No label carries the name of an object or of a user.
type Metrics struct {
	reviews    *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	unassessed *prometheus.CounterVec
	denied     *prometheus.CounterVec
	inFlight   *prometheus.GaugeVec

	// Port is that of the connections and handshakes.
	Port *tlsport.Metrics
}

// NewMetrics returns metrics without a sample.
func NewMetrics() *Metrics {
	m := &Metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_admission_reviews_total",
			Help: "Admission reviews by handler, operation, verdict and class of the actor.",
		}, []string{"handler", "operation", "verdict", "actor_class"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_admission_duration_seconds",
			Help:    "Time from the first byte of a review to the last of its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 2},
		}, []string{"handler"}),
		unassessed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_admission_unassessed_total",
			Help: "Reviews that were allowed without having been judged, by reason.",
		}, []string{"handler", "reason"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_admission_denied_total",
			Help: "Reviews that were denied because they could not be judged and must not pass unjudged (handler inject), by reason. The writer was asked to try again.",
		}, []string{"handler", "reason"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_admission_in_flight",
			Help: "Reviews that are being worked on.",
		}, []string{"handler"}),
		Port: tlsport.NewMetrics("plumbline_admission"),
	}
	return m
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.reviews, m.duration, m.unassessed, m.denied, m.inFlight,
		m.Port,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}

func (m *Metrics) observe(handler string, op admissionv1.Operation, a *Answer, took time.Duration) {
	m.reviews.WithLabelValues(handler, operationLabel(op), string(a.Verdict), strings.ToLower(string(a.Class))).Inc()
	m.duration.WithLabelValues(handler).Observe(took.Seconds())
	switch a.Verdict {
	case VerdictDenied:
		m.denied.WithLabelValues(handler, string(a.Reason)).Inc()
	case VerdictUnassessed:
		m.unassessed.WithLabelValues(handler, string(a.Reason)).Inc()
	default:
	}
}

// operationLabel keeps the label's values closed: a review may say anything.
func operationLabel(op admissionv1.Operation) string {
	switch op {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete:
		return strings.ToLower(string(op))
	default:
		return "unknown"
	}
}
