// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	prom "github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
)

// Figures count what is asked of sources.
type Figures struct {
	calls, errs *prometheus.CounterVec
}

// NewFigures registers the figures, each label with 0.
func NewFigures(registry prometheus.Registerer) (*Figures, error) {
	f := &Figures{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_effectiveness_source_requests_total",
			Help: "Requests of assessments to a source, answered or not.",
		}, []string{"source"}),
		errs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_effectiveness_source_errors_total",
			Help: "Requests with answers that do not count, by the fault: unreachable, refused, failed, too_large or malformed.",
		}, []string{"source", "fault"}),
	}
	if err := errors.Join(registry.Register(f.calls), registry.Register(f.errs)); err != nil {
		return nil, fmt.Errorf("registering the figures of sources: %w", err)
	}
	for _, name := range []string{alertmanager.Name, prom.Name} {
		f.calls.WithLabelValues(strings.ToLower(name))
		for _, fault := range source.Faults() {
			f.errs.WithLabelValues(strings.ToLower(name), labelOf(fault))
		}
	}
	return f, nil
}

func (f *Figures) answered(name string) { f.calls.WithLabelValues(strings.ToLower(name)).Inc() }

func (f *Figures) failed(name string, fault source.Fault) {
	f.answered(name)
	f.errs.WithLabelValues(strings.ToLower(name), labelOf(fault)).Inc()
}

// labelOf writes a fault as labels are written.
func labelOf(fault source.Fault) string { return telemetry.SpellWord(string(fault)) }
