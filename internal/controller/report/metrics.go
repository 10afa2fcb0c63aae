// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/report"
)

// The reasons for which a report is not written.
const (
	reasonKindMissing     = "KindMissing"
	reasonNameTaken       = "NameTaken"
	reasonNamespaceEnding = "NamespaceTerminating"
	reasonRefused         = "Refused"
)

// Metrics are the figures of reports. A nil one counts nothing.
type Metrics struct {
	errors *prometheus.CounterVec
}

// NewMetrics registers plumbline_report_errors_total, with a series of each format and reason
// from the start.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{errors: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_report_errors_total",
		Help: "Reports of namespaces that were not written, by the reason.",
	}, []string{"format", "reason"})}
	for _, format := range report.Formats() {
		for _, reason := range []string{reasonKindMissing, reasonNameTaken, reasonRefused} {
			m.errors.WithLabelValues(string(format), reason)
		}
	}
	if err := registry.Register(m.errors); err != nil {
		return nil, fmt.Errorf("registering the figures of reports: %w", err)
	}
	return m, nil
}

// count counts an error and returns its reason; empty without an error. A namespace that ends
// or is gone takes no new object, which is no error of a report.
func (m *Metrics) count(format report.Format, err error) (reason string) {
	switch {
	case err == nil:
		return ""
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err):
		return reasonNamespaceEnding
	case meta.IsNoMatchError(err):
		reason = reasonKindMissing
	case errors.Is(err, errNameTaken):
		reason = reasonNameTaken
	default:
		reason = reasonRefused
	}
	if m != nil {
		m.errors.WithLabelValues(string(format), reason).Inc()
	}
	return reason
}
